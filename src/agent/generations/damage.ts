// Errors for a damaged or unverified policy on disk. Pure functions.
import { WritError } from '../../core/errors.js';
import { type DamageFound, formatDamageSummary } from '../../core/status/scrub-state.js';
import type { TreeProblem } from './verify-tree.js';

const maxShown = 20;
const hint = '`writ verify --repair` repairs it.';

/** @returns the error STATE_DAMAGED with the number of all found damage and the first entries */
export function damageError(damage: readonly DamageFound[]): WritError {
  return new WritError('STATE_DAMAGED', `the policy on disk is damaged: ${formatDamageSummary(damage)}`, {
    facts: { found: damage.length, damage: damage.slice(0, maxShown) },
    hint,
  });
}

/** @returns the error for a policy that could not be read completely: it is unverified until a scan completes */
export function unverifiedError(cause: WritError): WritError {
  return new WritError('STATE_DAMAGED', `the policy on disk could not be verified: ${cause.message}`, {
    facts: { ...cause.facts, cause: cause.code },
    hint: 'Fix the cause, then run `writ verify` again.',
    cause,
  });
}

/** @returns the error for a tree that differs from its manifest; its facts name the first problem */
export function treeDamageError(
  generation: number,
  bundle: string,
  problems: readonly TreeProblem[],
): WritError {
  return new WritError(
    'STATE_DAMAGED',
    `generation ${generation}: the tree of ${bundle} does not match the published release`,
    { facts: { generation, bundle, problems: problems.slice(0, maxShown) }, hint },
  );
}
