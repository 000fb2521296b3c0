// What is active, or ought to be, against what it must be: the `current` link, and the generation that the last move
// left. Reads only. The link alone is not believed: a hand may have turned it to another generation of ours.
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
  /** What `current` names; undefined when there is no link, or one that is not ours. */
  readonly current: number | undefined;
  /** The generation that ought to be active. */
  readonly wanted: ExaminedGeneration;
  readonly damage: readonly DamageFound[];
}

interface LinkFound {
  readonly current: number | undefined;
  readonly kind?: 'missing' | 'changed' | 'type';
}

/**
 * @param options `known`: generations that were read in full a moment ago, by a recovery
 * @returns undefined when nothing is active and nothing ought to be
 * @throws WritError INTERRUPTED, DISK_*; STATE_DAMAGED for a foreign link where nothing is known of what was there
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
 * Where the last move ended. In the middle of a swap, or of one that a crash left, the link is right.
 * @throws WritError STATE_DAMAGED for a link that is not ours, where the ledger knows of none before
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
