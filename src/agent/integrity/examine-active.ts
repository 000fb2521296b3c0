// Compares the `current` link and the active generation with their manifests. Reads only. The result of the last move in the ledger, and
// not the link, determines the generation, because a person may have pointed the link to another one.
import * as fs from 'node:fs';
import { isWritError } from '../../core/errors.js';
import type { DamageFound } from '../../core/status/scrub-state.js';
import {
  type DiskView,
  type ExaminedGeneration,
  type ExamineOptions,
  examineGeneration,
  listDamage,
} from '../generations/examine.js';
import { activeGenerationNumber } from '../generations/generations.js';

export interface ExaminedActive {
  /** The generation that `current` names; undefined without a link, or for one that Writ did not make. */
  readonly current: number | undefined;
  /** The generation that must be active. */
  readonly wanted: ExaminedGeneration;
  readonly damage: readonly DamageFound[];
}

interface LinkFound {
  readonly current: number | undefined;
  readonly kind?: 'missing' | 'changed' | 'type';
}

/**
 * @param options `known`: generations that a recovery has just read in full
 * @returns undefined if no generation is or must be active
 * @throws WritError INTERRUPTED, DISK_*; STATE_DAMAGED for a foreign link if the ledger names no generation
 */
export async function examineActive(
  host: DiskView,
  options: ExamineOptions & { readonly known?: ReadonlyMap<number, ExaminedGeneration> | undefined },
): Promise<ExaminedActive | undefined> {
  const number = wantedGeneration(host);
  if (number === undefined) return undefined;
  const wanted = options.known?.get(number) ?? (await examineGeneration(host, number, options));
  const { current, kind } = readCurrent(host, number);
  const link: DamageFound[] =
    kind === undefined ? [] : [{ generation: number, part: 'current', kind, path: '.' }];
  return { current, wanted, damage: [...link, ...listDamage(wanted)] };
}

/**
 * @returns the generation of the last finished move. During a swap, or after one that a crash interrupted, that of the link
 * @throws WritError STATE_DAMAGED for a foreign link if the ledger names no generation
 */
export function wantedGeneration({ paths, ledger }: DiskView): number | undefined {
  const { settled } = ledger.read();
  const isInFlight = fs.existsSync(paths.journal);
  return settled === undefined || isInFlight ? activeGenerationNumber(paths) : settled;
}

function readCurrent({ paths }: DiskView, wanted: number): LinkFound {
  try {
    const current = activeGenerationNumber(paths);
    if (current === wanted) return { current };
    return { current, kind: current === undefined ? 'missing' : 'changed' };
  } catch (error) {
    if (!isWritError(error)) throw error;
    return { current: undefined, kind: 'type' };
  }
}
