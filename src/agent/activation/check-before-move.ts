// The last comparison before `current` moves, and the first one after it. Reads the facts for move-rules.ts.
import * as fs from 'node:fs';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { activeGenerationNumber, readGeneration } from '../generations/generations.js';
import type { Host } from '../state/host.js';
import {
  canPlanAgain,
  findObstacle,
  type MoveFacts,
  type MoveObstacle,
  obstacleText,
  type RefreshBasis,
  type RefreshFacts,
} from './move-rules.js';

export interface PlannedMove {
  readonly to: number | undefined;
  readonly expected: MoveFacts['expected'];
  readonly refresh?: RefreshBasis | undefined;
  /** True if the same start repairs the target, so that its damage is no obstacle. */
  readonly isDamageKnown?: boolean | undefined;
}

/** Compares the host with the plan of a move. @throws WritError STATE_VANISHED; SWAP_OUTDATED if the host changed */
export function requireMovable(host: Host, move: PlannedMove): void {
  // Before a first policy is active, the state mark must be known for this boot.
  const vanished = host.stateMark?.renew();
  if (vanished !== undefined) throw vanished;
  const { lock, paths } = host;
  const { to, expected, refresh, isDamageKnown } = move;
  const obstacle = findObstacle({
    isLockInPlace: lock?.isInPlace() ?? true,
    active: activeNow(paths),
    expected,
    missing: to === undefined || isDamageKnown === true ? undefined : missingOf(host, to),
    ...(refresh === undefined ? {} : { refresh: refreshFacts(host, refresh) }),
  });
  if (obstacle !== undefined) throw outdatedError(obstacle);
}

function outdatedError(obstacle: MoveObstacle): WritError {
  const { text, hint } = obstacleText(obstacle);
  const facts = { ...obstacle, link: 'unmoved', again: canPlanAgain(obstacle) };
  return new WritError('SWAP_OUTDATED', text, { facts, ...given({ hint }) });
}

/**
 * Checks whether this process still owns the state directory. If not, it must not write any more.
 * @returns SWAP_OUTDATED if the lock is lost, STATE_VANISHED if the state directory was replaced; otherwise undefined
 */
export function findLostState({ lock, stateMark }: Pick<Host, 'lock' | 'stateMark'>): WritError | undefined {
  const vanished = stateMark?.findVanished();
  if (vanished !== undefined) return vanished;
  return lock?.isInPlace() === false ? outdatedError({ because: 'lock' }) : undefined;
}

function activeNow(paths: Host['paths']): MoveFacts['active'] {
  try {
    return activeGenerationNumber(paths);
  } catch (error) {
    if (isWritError(error)) return 'foreign';
    throw error;
  }
}

function missingOf({ paths }: Host, generation: number): string | undefined {
  try {
    readGeneration(paths, generation);
    return undefined;
  } catch (error) {
    if (isWritError(error)) return error.message;
    throw error;
  }
}

function refreshFacts({ client, clock }: Host, basis: RefreshBasis): RefreshFacts {
  const { roles = {}, delegated = {}, clockFloorMs = 0 } = client.status() ?? {};
  const used = Object.entries(delegated).filter(([name]) => basis.delegated.includes(name));
  return {
    ...basis,
    nowBootMs: clock.bootMs(),
    nowMs: Math.max(clock.nowMs(), clockFloorMs),
    roles: { ...roles, ...Object.fromEntries(used) },
  };
}

/**
 * Follows the link once after the rename, because another process can act between the comparison and the rename.
 * @throws WritError SWAP_OUTDATED if `current` does not lead to this generation
 */
export function requireMoved({ paths }: Host, generation: number): void {
  const missing = findMissingPart(paths, generation);
  if (missing === undefined) return;
  const text = `\`current\` was moved to generation ${generation}, and ${missing}`;
  throw new WritError('SWAP_OUTDATED', text, {
    facts: { because: 'unresolved', to: generation, link: 'moved', again: false },
  });
}

function findMissingPart(paths: Host['paths'], generation: number): string | undefined {
  const active = activeNow(paths);
  if (active !== generation) return `names generation ${active ?? 'none'} now`;
  if (!fs.existsSync(paths.current)) return 'that generation does not exist any more';
  return undefined;
}

/** @returns true if the move ended before the rename, so that a restore is not necessary */
export function isUnmoved(error: unknown): error is WritError {
  return isWritError(error) && error.code === 'SWAP_OUTDATED' && error.facts['link'] === 'unmoved';
}

/** @returns true for SWAP_OUTDATED before the rename with the lock still held: the cycle may refresh, select and plan again */
export function mayPlanAgain(error: unknown): boolean {
  return isUnmoved(error) && error.facts['again'] === true;
}
