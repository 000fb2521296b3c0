// Decides whether `current` may move: compares the plan of a move with the host right before the rename. A process can be
// stopped for days between its plan and the rename. Pure functions; check-before-move.ts reads the facts.
import type { RoleStatus } from '../../trust/trust-report.js';

/** The refresh on which a move depends. A move without one, such as a restore, is not stopped by age or expiry. */
export interface RefreshBasis {
  /** Milliseconds of Clock.bootMs at the end of the refresh. */
  readonly atBootMs: number;
  /** Longest accepted age in milliseconds; longer than all timeouts of one cycle together. */
  readonly maxAgeMs: number;
  /** Names of the delegated roles that list the new releases. */
  readonly delegated: readonly string[];
}

export interface MoveFacts {
  /** True if the path of the lock leads to the file that this process has locked. */
  readonly isLockInPlace: boolean;
  /** The active generation; undefined if there is none, `foreign` if Writ did not create the link. */
  readonly active: number | 'foreign' | undefined;
  /** The accepted values of `active`: that of the plan, or that after an earlier part of the same move. */
  readonly expected: readonly (number | undefined)[];
  /** A text that names the missing directory or tree of the target; undefined if the target is complete. */
  readonly missing: string | undefined;
  /** Left out for a move that depends on no refresh. */
  readonly refresh?: RefreshFacts;
}

export interface RefreshFacts extends RefreshBasis {
  readonly nowBootMs: number;
  /** Epoch milliseconds; not earlier than the newest signature that this host has accepted. */
  readonly nowMs: number;
  /** Status of each role by its name. */
  readonly roles: Readonly<Record<string, RoleStatus>>;
}

export type MoveObstacle =
  | { readonly because: 'lock' }
  | { readonly because: 'current'; readonly active: MoveFacts['active'] }
  | { readonly because: 'target'; readonly missing: string }
  | { readonly because: 'expired'; readonly role: string }
  | { readonly because: 'age'; readonly ageMs: number };

/**
 * @returns the first obstacle to the move, in this order: lock, current, target, and expired or age of the refresh; undefined if
 *   the move is allowed
 */
export function findObstacle(facts: MoveFacts): MoveObstacle | undefined {
  const { isLockInPlace, active, expected, missing, refresh } = facts;
  if (!isLockInPlace) return { because: 'lock' };
  if (active === 'foreign' || !expected.includes(active)) return { because: 'current', active };
  if (missing !== undefined) return { because: 'target', missing };
  return refresh && obstacleOfRefresh(refresh);
}

function obstacleOfRefresh(refresh: RefreshFacts): MoveObstacle | undefined {
  const { roles, nowMs, nowBootMs, atBootMs, maxAgeMs } = refresh;
  const expired = Object.entries(roles).find(([, { expiresAtMs }]) => expiresAtMs <= nowMs);
  if (expired !== undefined) return { because: 'expired', role: expired[0] };
  const ageMs = nowBootMs - atBootMs;
  return ageMs > maxAgeMs ? { because: 'age', ageMs } : undefined;
}

/** @returns true if a new plan in the same process can succeed; without the lock it cannot */
export function canPlanAgain({ because }: Pick<MoveObstacle, 'because'>): boolean {
  return because !== 'lock';
}

/** @returns the text of an obstacle, and a hint for the operator */
export function obstacleText(obstacle: MoveObstacle): { readonly text: string; readonly hint?: string } {
  switch (obstacle.because) {
    case 'lock':
      return {
        text: 'the lock file was removed or replaced, so that another process may have changed the state directory',
        hint: 'Restart the agent, or run the command again. Never remove the lock file: the kernel frees the lock of a process that has ended.',
      };
    case 'current':
      return {
        text: `\`current\` names ${nameOf(obstacle.active)} now, and another one when it was planned`,
      };
    case 'target':
      return { text: `the generation to activate is not complete any more: ${obstacle.missing}` };
    case 'expired':
      return { text: `the ${obstacle.role} role has expired since it was verified` };
    case 'age':
      return { text: `the repository was asked ${Math.round(obstacle.ageMs / 60_000)} minutes ago` };
  }
}

function nameOf(generation: MoveFacts['active']): string {
  if (generation === 'foreign') return 'nothing that Writ made';
  return generation === undefined ? 'no generation' : `generation ${generation}`;
}
