// What is known to be wrong with the policy on disk: what the last look found, as far as it concerns what is in use now.
// Looks at nothing itself, and loads nothing that repairs: `writ status` reads it too.
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

/** @returns the damage that was found and stands */
export function damageStanding(host: LedgerView): DamageFound[] {
  const { scrub } = host.ledger.read();
  return scrub === undefined || scrub.damage.length === 0 ? [] : selectCurrentDamage(scrub, inUse(host));
}

/** @returns what is wrong with the policy on disk, as far as it is known */
export function damageProblems(host: LedgerView): Problem[] {
  const { scrub } = host.ledger.read();
  if (scrub === undefined) return [];
  const standing = damageStanding(host);
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
