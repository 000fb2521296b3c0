// The known damage of the policy on disk: the damage of the last scan that concerns the active generation. Does not scan, and imports no
// code for repairs, because `writ status` imports it.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { orUndefined, WritError } from '../../core/errors.js';
import {
  type ActiveDirectories,
  type DamageFound,
  selectCurrentDamage,
} from '../../core/status/scrub-state.js';
import { damageError } from '../generations/damage.js';
import { notedLinks } from '../generations/generation-notes.js';
import { activeGenerationNumber, readGeneration } from '../generations/generations.js';
import type { Host } from '../state/host.js';

type LedgerView = Pick<Host, 'paths' | 'ledger'>;

/** @returns the damage of the last scan that still concerns the active generation */
export function listCurrentDamage(host: LedgerView): DamageFound[] {
  const { scrub } = host.ledger.read();
  return scrub === undefined || scrub.damage.length === 0 ? [] : selectCurrentDamage(scrub, inUse(host));
}

/** @returns STATE_DAMAGED for current damage, and REPAIRED_BY_PREVIOUS while the fallback generation is active */
export function damageProblems(host: LedgerView): Problem[] {
  const { scrub } = host.ledger.read();
  if (scrub === undefined) return [];
  const standing = listCurrentDamage(host);
  const { behind } = scrub;
  return [
    ...(standing.length === 0 ? [] : [problemOf(damageError(standing))]),
    ...(behind === undefined || behind.generation !== inUse(host).generation
      ? []
      : [problemOf(new WritError('REPAIRED_BY_PREVIOUS', behind.text))]),
  ];
}

function inUse({ paths, ledger }: LedgerView): ActiveDirectories {
  const generation = orUndefined(() => activeGenerationNumber(paths)) ?? ledger.read().settled;
  if (generation === undefined) return { generation, trees: new Map() };
  const read = (): [string, string][] =>
    readGeneration(paths, generation).entries.map((one) => [one.bundle, one.treeDirectory]);
  const links = orUndefined(read) ?? Object.entries(notedLinks(ledger.read(), generation) ?? {});
  return { generation, trees: new Map(links) };
}
