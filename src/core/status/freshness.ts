// How fresh is what a host trusts: what each attempt to refresh leaves behind, and what follows from it now. Owns
// the words fresh, stale, frozen and refused, and the age that `maxStale` is held against. Pure: never asks the
// time, and judges a clock that was set back by the time that the repository has signed.
import { type ErrorCode, WritError } from '../errors.js';
import { withoutUndefined } from '../given.js';
import { utcTimeText } from '../text/iso-time.js';

/**
 * `fresh`: proven current not long ago. `stale`: not proven for longer than `staleAfter`. `frozen`: a role of the
 * trusted metadata has expired, by an attack or a publisher asleep. `refused`: the server's metadata was refused,
 * an attack or a fault, and none was accepted since.
 */
export type Freshness = 'fresh' | 'stale' | 'frozen' | 'refused';

/** Attempts to refresh that failed one after the other; the code is the last one's. */
export interface FailedAttempts {
  readonly code: ErrorCode;
  /** The role that the last one fell over, where it was about one. */
  readonly role?: string;
  /** The first of them. Epoch milliseconds. */
  readonly sinceMs: number;
  /** The last of them. */
  readonly atMs: number;
  readonly times: number;
}

/** What is remembered of the attempts so far. Times are local readings, epoch milliseconds. */
export interface Contact {
  /** The server last answered, whatever became of its answer. */
  readonly lastContactAtMs?: number;
  /** A refresh was last verified to its end. */
  readonly verifiedAtMs?: number;
  /** Every failure since then. */
  readonly failing?: FailedAttempts;
  /** Those of them in which metadata came and was refused: an attacker cannot silence this by cutting the line. */
  readonly refused?: FailedAttempts;
}

export interface Attempt {
  readonly atMs: number;
  /** Left out when the refresh was verified to its end. */
  readonly error?: { readonly code: ErrorCode; readonly facts: Readonly<Record<string, unknown>> };
}

/** What a failed refresh says about the server: not heard, expired, heard and refused; or it was this host. */
export type TroubleKind = 'unreached' | 'expired' | 'refused' | 'host';

const kinds: Readonly<Partial<Record<ErrorCode, TroubleKind>>> = {
  SERVER_UNREACHABLE: 'unreached',
  PROXY_REFUSED: 'unreached',
  SERVER_ERROR: 'unreached',
  SERVER_BUSY: 'unreached',
  REDIRECT_REFUSED: 'unreached',
  DOWNLOAD_TIMEOUT: 'unreached',
  DOWNLOAD_TRUNCATED: 'unreached',
  METADATA_EXPIRED: 'expired',
  METADATA_MALFORMED: 'refused',
  METADATA_ROLLBACK: 'refused',
  METADATA_MIX: 'refused',
  METADATA_MISSING: 'refused',
  SIGNATURE_WRONG_KEY: 'refused',
  SIGNATURE_THRESHOLD: 'refused',
  SIGNATURE_DUPLICATE: 'refused',
  DELEGATION_LIMIT: 'refused',
  ROOT_CHAIN_TOO_LONG: 'refused',
  DOWNLOAD_TOO_LARGE: 'refused',
  DOWNLOAD_DIGEST: 'refused',
};

/** @returns what a failed attempt says: that the server was away, its answer was refused, or this host is at fault */
export function troubleOf(code: ErrorCode): TroubleKind {
  return kinds[code] ?? 'host';
}

/** @returns what is known after an attempt. One that we ended ourselves is none, and must not come here. */
export function contactAfter(before: Contact, { atMs, error }: Attempt): Contact {
  if (error === undefined) return { lastContactAtMs: atMs, verifiedAtMs: atMs };
  const kind = troubleOf(error.code);
  const { role } = error.facts;
  const failed = (earlier: FailedAttempts | undefined): FailedAttempts =>
    withoutUndefined<FailedAttempts>({
      code: error.code,
      role: typeof role === 'string' ? role.slice(0, 100) : undefined,
      sinceMs: earlier?.sinceMs ?? atMs,
      atMs,
      times: (earlier?.times ?? 0) + 1,
    });
  return {
    ...before,
    ...(kind === 'expired' || kind === 'refused' ? { lastContactAtMs: atMs } : {}),
    failing: failed(before.failing),
    ...(kind === 'refused' ? { refused: failed(before.refused) } : {}),
  };
}

export interface TrustedRole {
  readonly role: string;
  readonly version: number;
  /** Epoch milliseconds. */
  readonly expiresAtMs: number;
}

export interface FreshnessFacts {
  readonly contact: Contact;
  readonly nowMs: number;
  /** By a clock that nobody can set: since `verifiedAtMs`, where the same process saw both. */
  readonly elapsedMs?: number | undefined;
  /** Greatest time that the repository has signed. */
  readonly clockFloorMs?: number | undefined;
  /** When the trusted timestamp was signed: a proof of age that outlives every restart. */
  readonly signedAtMs?: number | undefined;
  /** The metadata that this host trusts. */
  readonly roles: readonly TrustedRole[];
  readonly staleAfterMs: number;
  readonly maxStaleMs?: number | undefined;
  /** Known to be older than `maxStale` since then; only a success ends it, and no clock. */
  readonly overdueNotedMs?: number | undefined;
}

export interface FreshnessReport extends Contact {
  readonly state: Freshness;
  /** Since the metadata was last proven current; left out when it never was. */
  readonly ageMs?: number;
  /** Since when it is not fresh; left out while it is, and when it never was. */
  readonly sinceMs?: number;
  /** The role that expired first. */
  readonly expired?: TrustedRole;
  /** Older than `maxStale`: since when. */
  readonly overdueSinceMs?: number;
}

/** @returns the judgement at `nowMs`, or at the clock floor where the clock is behind it */
export function judgeFreshness(facts: FreshnessFacts): FreshnessReport {
  const nowMs = Math.max(facts.nowMs, facts.clockFloorMs ?? 0);
  const { contact, staleAfterMs, maxStaleMs } = facts;
  const lastGoodMs = lastGood(facts, nowMs);
  const ageMs = lastGoodMs === undefined ? undefined : Math.max(nowMs - lastGoodMs, facts.elapsedMs ?? 0);
  const expired = firstExpired(facts.roles, nowMs);
  const staleAfter = Math.min(staleAfterMs, maxStaleMs ?? staleAfterMs);
  const isOverdue = maxStaleMs !== undefined && ageMs !== undefined && ageMs > maxStaleMs;
  const overdueSinceMs = facts.overdueNotedMs ?? (isOverdue ? nowMs - ageMs + maxStaleMs : undefined);
  const isStale = ageMs === undefined || ageMs > staleAfter || overdueSinceMs !== undefined;
  const state = stateOf(contact, expired, isStale);
  const since: Readonly<Record<Freshness, number | undefined>> = {
    fresh: undefined,
    refused: contact.refused?.sinceMs,
    frozen: frozenSince(facts, expired),
    stale: ageMs === undefined ? undefined : nowMs - ageMs + staleAfter,
  };
  const sinceMs = since[state];
  return withoutUndefined<FreshnessReport>({ ...contact, state, ageMs, sinceMs, expired, overdueSinceMs });
}

/** A role that expired by the clock floor alone has an end in the future of this host: the first failure counts then. */
function frozenSince(
  { contact, nowMs }: FreshnessFacts,
  expired: TrustedRole | undefined,
): number | undefined {
  const isPast = expired !== undefined && expired.expiresAtMs <= nowMs;
  return isPast ? expired.expiresAtMs : contact.failing?.sinceMs;
}

/**
 * The greater of the last success and the signature of the timestamp in use. A success in the future is a clock
 * that was set back: it proves nothing about how long ago it was.
 */
function lastGood({ contact, signedAtMs }: FreshnessFacts, nowMs: number): number | undefined {
  const { verifiedAtMs } = contact;
  const known = [verifiedAtMs, signedAtMs].filter((one) => one !== undefined && one <= nowMs);
  return known.length === 0 ? undefined : Math.max(...known.map(Number));
}

function firstExpired(roles: readonly TrustedRole[], nowMs: number): TrustedRole | undefined {
  return roles.filter((one) => one.expiresAtMs <= nowMs).sort((a, b) => a.expiresAtMs - b.expiresAtMs)[0];
}

/** An alarm outranks a freeze, a freeze outranks silence. */
function stateOf(
  { failing, refused }: Contact,
  expired: TrustedRole | undefined,
  isStale: boolean,
): Freshness {
  if (refused !== undefined) return 'refused';
  // What the server offers may have expired while what we trust has not.
  if (expired !== undefined || failing?.code === 'METADATA_EXPIRED') return 'frozen';
  return isStale ? 'stale' : 'fresh';
}

/** @returns POLICY_STALE, as status, history and the log say it */
export function staleError(report: FreshnessReport, maxStaleMs: number | undefined): WritError {
  const { state, ageMs = 0, failing, refused, overdueSinceMs } = report;
  const code = refused?.code ?? failing?.code;
  const why = code === undefined ? '' : ` [${code}]`;
  const age = ageMs < 120_000 ? `${Math.floor(ageMs / 1000)} s` : `${Math.floor(ageMs / 60_000)} minutes`;
  // A refresh, or a clock that was set back, made the policy younger; only the agent ends the period.
  const isYounger = overdueSinceMs !== undefined && maxStaleMs !== undefined && ageMs <= maxStaleMs;
  const text = isYounger
    ? `policy was older than maxStale from ${utcTimeText(overdueSinceMs)} on; the end is not recorded yet`
    : `policy was last proven current ${age} ago, longer than maxStale`;
  return new WritError('POLICY_STALE', `${text}${why}`, { facts: { state, ageMs, maxStaleMs, code } });
}
