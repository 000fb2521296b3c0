// Tokens in requests and responses of the API and the command line, as types. None contains the secret token itself.
import type { Role } from './answers.js';

/** The request to create a token. */
export interface NewToken {
  readonly kind: TokenLine['kind'];
  /** Only for the kind `people`; `view` if undefined. */
  readonly role?: Role;
  readonly note?: string;
  /** Left out: no bound. */
  readonly uses?: number;
  /** Left out: until it is revoked. */
  readonly lifetimeMs?: number;
  /** Glob of the host names that it may enrol; undefined: all. */
  readonly hosts?: string;
  /** Labels of each host that enrols with this token. They take precedence over the labels that the host reports. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Result of one request to retire the hosts that a token enrolled; each request retires a bounded number. */
export interface RetiredHosts {
  readonly retired: number;
  /** Key of the last retired host, for the next request; undefined if no host is left. */
  readonly afterKey?: string;
}

export interface TokenLine {
  readonly id: string;
  readonly kind: 'hosts' | 'people' | 'opa';
  readonly state: 'good' | 'revoked' | 'expired' | 'used-up';
  readonly role?: Role;
  readonly note?: string;
  /** Glob of the host names that it may enrol; undefined: all. */
  readonly hosts?: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Left out: no bound. */
  readonly usesLeft?: number;
  readonly createdAtMs: number;
  /** Left out: until it is revoked. */
  readonly expiresAtMs?: number;
}
