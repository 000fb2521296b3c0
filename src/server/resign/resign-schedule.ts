// Decides when the online roles must be re-signed, and how long to wait after a failure. Pure.
import { computeBackoffMs } from '../../core/backoff.js';
import { type OnlineRole, onlineRoles } from '../../core/tuf/tuf-metadata.js';
import type { RoleState, ServedState } from './repository-view.js';

/**
 * @param role its signing time and expiry in epoch milliseconds
 * @returns epoch milliseconds, after a quarter of the validity period, so that three more attempts after such a time are
 *   possible before hosts see an expired role
 */
export function nextResignAt(role: Pick<RoleState, 'signedAtMs' | 'expiresMs'>): number {
  return role.signedAtMs + (role.expiresMs - role.signedAtMs) / 4;
}

/**
 * @returns the roles to sign now; empty when none must be signed, or snapshot or timestamp cannot be read, because unknown
 *   content is never replaced. A pending role needs a new snapshot, and a new snapshot needs a new timestamp
 */
export function dueRoles(state: ServedState, nowMs: number): readonly OnlineRole[] {
  const { snapshot, timestamp } = state.roles;
  if (snapshot === undefined || timestamp === undefined) return [];
  const due = (role: OnlineRole, { signedAtMs, expiresMs }: RoleState): boolean =>
    nextResignAt({ signedAtMs, expiresMs }) <= nowMs || isOutdated(state, role);
  if (state.pending.length > 0 || due('snapshot', snapshot)) return onlineRoles;
  return due('timestamp', timestamp) ? ['timestamp'] : [];
}

/** A new root gave the role another key. Hosts refuse the published file until that key has signed. */
function isOutdated({ problems }: ServedState, role: OnlineRole): boolean {
  return problems.some((problem) => problem.role === role && problem.code === 'SIGNATURE_WRONG_KEY');
}

const retries = { firstMs: 5000, maxMs: 600_000 };

/** @param failures consecutive failures, at least 1. @returns milliseconds: 5 s, doubled each time, at most 10 min */
export function resignRetryDelay(failures: number): number {
  return computeBackoffMs(failures, retries);
}
