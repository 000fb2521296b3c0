// What `writ verify` answers: each generation that this host relies on, what is damaged in it, and what a repair did.
// Owns the shape; its members are a promise (additive within schema 1).
import type { CycleResult, Problem } from '../cycle/cycle-report.js';
import type { DamageFound } from './scrub-state.js';
import type { UntrustedStatus } from './status.js';

/** `active` first; `previous` and `last-known-good` are what a rollback can go to, where they are others. */
export type VerifiedRole = 'active' | 'previous' | 'last-known-good';

export interface VerifiedGeneration {
  readonly generation: number;
  readonly role: VerifiedRole;
  /** As it is at the end. */
  readonly damage: readonly DamageFound[];
}

/** A damaged backup that a repair could not make again. */
export interface UnrepairedBackup {
  readonly generation: number;
  readonly role: Exclude<VerifiedRole, 'active'>;
  /** `given-up`: nobody can have it again, and it is no backup any more. `kept`: it is named as it is, and looked at again. */
  readonly end: 'given-up' | 'kept';
  readonly problem: Problem;
}

export interface VerifyResult {
  readonly schema: 1;
  readonly type: 'verify.result';
  /** `empty`: nothing is active. `repaired`: damage was found, and all is complete now. */
  readonly outcome: 'intact' | 'repaired' | 'damaged' | 'empty';
  /** 0 when all that this host relies on is complete in the end, otherwise 1. */
  readonly exitCode: 0 | 1;
  readonly generations: readonly VerifiedGeneration[];
  /** What was damaged before a repair. */
  readonly found: readonly DamageFound[];
  /** Kept releases that keys of today do not vouch for; an active one is `damaged`. */
  readonly untrusted: readonly UntrustedStatus[];
  /** What a repair of the active policy did. */
  readonly repair?: CycleResult;
  /** Left out when there is none. */
  readonly unrepaired?: readonly UnrepairedBackup[];
  readonly durationMs: number;
}
