// The result of `writ verify`: each generation that this host relies on, its damage, and the result of a repair. The members are
// part of schema 1, which only gets new members.
import type { CycleResult, Problem } from '../cycle/cycle-report.js';
import type { DamageFound } from './scrub-state.js';
import type { UntrustedStatus } from './status.js';

/** `active` first; `previous` and `last-known-good` are the backups for a rollback, if they are other generations. */
export type VerifiedRole = 'active' | 'previous' | 'last-known-good';

export interface VerifiedGeneration {
  readonly generation: number;
  readonly role: VerifiedRole;
  /** Damage after the repair, if one was made. */
  readonly damage: readonly DamageFound[];
}

/** A damaged backup that a repair could not complete. */
export interface UnrepairedBackup {
  readonly generation: number;
  readonly role: Exclude<VerifiedRole, 'active'>;
  /** `given-up`: it can never be completed and is not a backup any more. `kept`: it stays damaged and is scanned again. */
  readonly end: 'given-up' | 'kept';
  readonly problem: Problem;
}

export interface VerifyResult {
  readonly schema: 1;
  readonly type: 'verify.result';
  /** `empty`: no generation is active. `repaired`: damage was found, and every generation is complete now. */
  readonly outcome: 'intact' | 'repaired' | 'damaged' | 'empty';
  /** 0 if every generation that this host relies on is complete at the end, otherwise 1. */
  readonly exitCode: 0 | 1;
  readonly generations: readonly VerifiedGeneration[];
  /** Damage before a repair. */
  readonly found: readonly DamageFound[];
  /** Retained releases that do not verify against the current keys. With an active one, the outcome is `damaged`. */
  readonly untrusted: readonly UntrustedStatus[];
  /** Result of a repair of the active policy. */
  readonly repair?: CycleResult;
  /** Left out if there are none. */
  readonly unrepaired?: readonly UnrepairedBackup[];
  readonly durationMs: number;
}
