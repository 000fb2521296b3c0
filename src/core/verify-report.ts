// What `writ verify` answers: each generation that this host relies on, what is damaged in it, and what a repair did.
// Owns the shape; its members are a promise (additive within schema 1).
import type { CycleResult } from './cycle-report.js';
import type { DamageFound } from './scrub.js';
import type { UntrustedStatus } from './status.js';

/** `active` first; `previous` and `last-known-good` are what a rollback can go to, where they are others. */
export type VerifiedRole = 'active' | 'previous' | 'last-known-good';

export interface VerifiedGeneration {
  readonly generation: number;
  readonly role: VerifiedRole;
  /** As it is at the end. */
  readonly damage: readonly DamageFound[];
}

export interface VerifyResult {
  readonly schema: 1;
  readonly type: 'verify.result';
  /** `empty`: nothing is active. `repaired`: damage was found, and all is whole now. */
  readonly outcome: 'whole' | 'repaired' | 'damaged' | 'empty';
  /** 0 when all is whole in the end, otherwise 1. */
  readonly exitCode: 0 | 1;
  readonly generations: readonly VerifiedGeneration[];
  /** What was damaged before a repair. */
  readonly found: readonly DamageFound[];
  /** Kept releases that keys of today do not vouch for; an active one is `damaged`. */
  readonly untrusted: readonly UntrustedStatus[];
  /** What a repair of the active policy did. */
  readonly repair?: CycleResult;
  readonly durationMs: number;
}
