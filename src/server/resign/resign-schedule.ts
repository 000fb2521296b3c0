// When the online roles are due to be signed again, and how long to wait after a failure. Pure.
import { computeBackoffMs } from '../../core/backoff.js';
import { type OnlineRole, onlineRoles } from '../../core/tuf/tuf-metadata.js';
import type { RepositoryState, RoleState } from './repository-view.js';

/**
 * A quarter of the life: three more tries of that length fit in before hosts see an expired role.
 * @param role when it was signed and expires, epoch milliseconds
 * @returns epoch milliseconds
 */
export function nextResignAt(role: Pick<RoleState, 'signedAtMs' | 'expiresMs'>): number {
  return role.signedAtMs + (role.expiresMs - role.signedAtMs) / 4;
}

/**
 * What has to be signed now. A pending role needs a new snapshot, and a new snapshot a new timestamp.
 * @returns empty when nothing is due, or when snapshot or timestamp cannot be read: nothing is signed over
 *   what is not understood
 */
export function dueRoles(state: RepositoryState, nowMs: number): readonly OnlineRole[] {
  const { snapshot, timestamp } = state.roles;
  if (snapshot === undefined || timestamp === undefined) return [];
  const due = (role: OnlineRole, { signedAtMs, expiresMs }: RoleState): boolean =>
    nextResignAt({ signedAtMs, expiresMs }) <= nowMs || isOutdated(state, role);
  if (state.pending.length > 0 || due('snapshot', snapshot)) return onlineRoles;
  return due('timestamp', timestamp) ? ['timestamp'] : [];
}

/** A new root gave the role another key: until that one has signed, hosts refuse what is live. */
function isOutdated({ problems }: RepositoryState, role: OnlineRole): boolean {
  return problems.some((problem) => problem.role === role && problem.code === 'SIGNATURE_WRONG_KEY');
}

const retries = { firstMs: 5000, maxMs: 600_000 };

/** @param failures in a row, at least 1. @returns milliseconds: 5 s, doubling, at most 10 min */
export function resignRetryDelay(failures: number): number {
  return computeBackoffMs(failures, retries);
}
