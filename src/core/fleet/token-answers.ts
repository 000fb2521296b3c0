// Tokens as the API and the command line show and ask for them: shapes only, never the token itself.
import type { Role } from './answers.js';

/** What is asked of a token that is to be made. */
export interface NewToken {
  readonly kind: TokenLine['kind'];
  /** Of `people` alone; `view` when it is left out. */
  readonly role?: Role;
  readonly note?: string;
  /** Left out: no bound. */
  readonly uses?: number;
  /** Left out: until it is revoked. */
  readonly lifetimeMs?: number;
  /** Glob of the host names that it enrols; left out: all. */
  readonly hosts?: string;
  /** A host of this token has them, whatever it says itself. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Of the hosts that one token enrolled, a bounded number. */
export interface RetiredHosts {
  readonly retired: number;
  /** Key of the last one, for the next call; left out when there are no more. */
  readonly afterKey?: string;
}

export interface TokenLine {
  readonly id: string;
  readonly kind: 'hosts' | 'people' | 'opa';
  readonly state: 'good' | 'revoked' | 'expired' | 'used-up';
  readonly role?: Role;
  readonly note?: string;
  /** Glob of the names that it enrols; left out: all. */
  readonly hosts?: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Left out: no bound. */
  readonly usesLeft?: number;
  readonly createdAtMs: number;
  /** Left out: until it is revoked. */
  readonly expiresAtMs?: number;
}
