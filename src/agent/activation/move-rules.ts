// Whether `current` may move now: compares what a move was planned from with what is on the host at the last moment before
// the rename. A process can be stopped for days between its plan and the rename. Pure: look-before-move.ts reads the facts.
import type { RoleStatus } from '../../trust/trust-report.js';

/** The refresh that a move rests on; a move that rests on none, as a way back, is not stopped by age or expiry. */
export interface RefreshBasis {
  /** By Clock.bootMs, when the refresh ended. */
  readonly atBootMs: number;
  /** Longer than all timeouts of one cycle together. */
  readonly maxAgeMs: number;
  /** Names of the delegated roles that list the new releases. */
  readonly delegated: readonly string[];
}

export interface MoveFacts {
  /** The path of the lock leads to the file that this process has locked. */
  readonly isLockInPlace: boolean;
  /** What `current` names; undefined where there is none, `foreign` for what is no link of Writ. */
  readonly active: number | 'foreign' | undefined;
  /** What it may name: where the plan began, or where an earlier part of the same move left it. */
  readonly expected: readonly (number | undefined)[];
  /** Why the generation to go to is not complete, its directory and the trees that it names; undefined where it is. */
  readonly missing: string | undefined;
  /** Left out for a move that rests on no refresh. */
  readonly refresh?: RefreshFacts;
}

export interface RefreshFacts extends RefreshBasis {
  readonly nowBootMs: number;
  /** Epoch milliseconds; no earlier than the newest signature that this host has accepted. */
  readonly nowMs: number;
  /** By name. */
  readonly roles: Readonly<Record<string, RoleStatus>>;
}

export type MoveObstacle =
  | { readonly because: 'lock' }
  | { readonly because: 'current'; readonly active: MoveFacts['active'] }
  | { readonly because: 'target'; readonly missing: string }
  | { readonly because: 'expired'; readonly role: string }
  | { readonly because: 'age'; readonly ageMs: number };

/** @returns the first thing that forbids the move; undefined where nothing does */
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

/** True where a new plan in the same process can help: not without the lock. */
export function canPlanAgain({ because }: Pick<MoveObstacle, 'because'>): boolean {
  return because !== 'lock';
}

/** @returns what was found, and what a person does about it */
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
