// The freshness of the metadata that a host trusts: the record of the refresh attempts, and the state that follows from it now.
// Defines fresh, stale, frozen and refused, and the age that `maxStale` limits. The caller passes the time; after the clock was
// set back, the greatest time that the repository signed replaces it.
import { type ErrorCode, WritError } from '../errors.js';
import { withoutUndefined } from '../given.js';
import { utcTimeText } from '../text/iso-time.js';

/**
 * `fresh`: proven current within `staleAfter`. `stale`: not proven current for longer. `frozen`: a role of the trusted or the
 * offered metadata has expired, by a freeze attack or because the publisher did not re-sign. `refused`: the server's metadata
 * was refused, by an attack or a fault, and none was accepted since.
 */
export type Freshness = 'fresh' | 'stale' | 'frozen' | 'refused';

/** Consecutive failed attempts to refresh; code and role are those of the last attempt. */
export interface FailedAttempts {
  readonly code: ErrorCode;
  /** The role that the last attempt failed at; left out if the failure names none. */
  readonly role?: string;
  /** Epoch milliseconds of the first failure. */
  readonly sinceMs: number;
  /** Epoch milliseconds of the last failure. */
  readonly atMs: number;
  readonly times: number;
}

/** The record of the refresh attempts. Times are readings of the local clock, epoch milliseconds. */
export interface Contact {
  /** When the server last answered, also if its answer was refused. */
  readonly lastContactAtMs?: number;
  /** When a refresh was last verified completely. */
  readonly verifiedAtMs?: number;
  /** All failures since then. */
  readonly failing?: FailedAttempts;
  /** The failures with refused metadata. Kept apart, so that an attacker cannot hide them by cutting the connection. */
  readonly refused?: FailedAttempts;
}

export interface RefreshAttempt {
  readonly atMs: number;
  /** Left out if the refresh was verified completely. */
  readonly error?: { readonly code: ErrorCode; readonly facts: Readonly<Record<string, unknown>> };
}

/** The cause of a failed refresh: no answer of the server, expired metadata, refused metadata; or a failure of this host. */
export type RefreshFailureKind = 'unreached' | 'expired' | 'refused' | 'host';

const failureKinds: Readonly<Partial<Record<ErrorCode, RefreshFailureKind>>> = {
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

/** @returns the cause of a failed attempt; `host` for a code that no answer of a server causes */
export function classifyRefreshFailure(code: ErrorCode): RefreshFailureKind {
  return failureKinds[code] ?? 'host';
}

/** @returns the record after an attempt. The caller leaves out an attempt that this host stopped, because it proves nothing. */
export function recordAttempt(before: Contact, { atMs, error }: RefreshAttempt): Contact {
  if (error === undefined) return { lastContactAtMs: atMs, verifiedAtMs: atMs };
  const kind = classifyRefreshFailure(error.code);
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
  /** Milliseconds since `verifiedAtMs` by the monotonic clock; undefined if another process recorded that time. */
  readonly elapsedMs?: number | undefined;
  /** Greatest time that the repository signed. */
  readonly clockFloorMs?: number | undefined;
  /** When the trusted timestamp was signed: a proof of age that a restart does not lose. */
  readonly signedAtMs?: number | undefined;
  /** The metadata that this host trusts. */
  readonly roles: readonly TrustedRole[];
  readonly staleAfterMs: number;
  readonly maxStaleMs?: number | undefined;
  /** When the metadata was first recorded as older than `maxStale`. Only a verified refresh ends this, never the clock. */
  readonly overdueNotedMs?: number | undefined;
}

export interface FreshnessReport extends Contact {
  readonly state: Freshness;
  /** Milliseconds since the metadata was last proven current; left out if it never was. */
  readonly ageMs?: number;
  /** Since when the metadata is not fresh; left out while it is fresh, and if it never was. */
  readonly sinceMs?: number;
  /** The role that expired first. */
  readonly expired?: TrustedRole;
  /** Since when the metadata is older than `maxStale`; left out if it is not. */
  readonly overdueSinceMs?: number;
}

/**
 * @returns the freshness at `nowMs`, or at the clock floor if the clock is behind it. The first state that applies: refused (the
 *   last answer), frozen (a role expired), stale (older than staleAfter or maxStale, or never proven), fresh. ageMs: left out if
 *   never proven
 */
export function judgeFreshness(facts: FreshnessFacts): FreshnessReport {
  const nowMs = Math.max(facts.nowMs, facts.clockFloorMs ?? 0);
  const { contact, staleAfterMs, maxStaleMs } = facts;
  const lastProofMs = findLastProofMs(facts, nowMs);
  const ageMs = lastProofMs === undefined ? undefined : Math.max(nowMs - lastProofMs, facts.elapsedMs ?? 0);
  const expired = findFirstExpired(facts.roles, nowMs);
  const staleAfter = Math.min(staleAfterMs, maxStaleMs ?? staleAfterMs);
  const isOverdue = maxStaleMs !== undefined && ageMs !== undefined && ageMs > maxStaleMs;
  const overdueSinceMs = facts.overdueNotedMs ?? (isOverdue ? nowMs - ageMs + maxStaleMs : undefined);
  const isStale = ageMs === undefined || ageMs > staleAfter || overdueSinceMs !== undefined;
  const state = judgeState(contact, expired, isStale);
  const since: Readonly<Record<Freshness, number | undefined>> = {
    fresh: undefined,
    refused: contact.refused?.sinceMs,
    frozen: findFrozenSinceMs(facts, expired),
    stale: ageMs === undefined ? undefined : nowMs - ageMs + staleAfter,
  };
  const sinceMs = since[state];
  return withoutUndefined<FreshnessReport>({ ...contact, state, ageMs, sinceMs, expired, overdueSinceMs });
}

/** Uses the first failure for a role that expired only by the clock floor, because its expiry is in the future of this host. */
function findFrozenSinceMs(
  { contact, nowMs }: FreshnessFacts,
  expired: TrustedRole | undefined,
): number | undefined {
  const isPast = expired !== undefined && expired.expiresAtMs <= nowMs;
  return isPast ? expired.expiresAtMs : contact.failing?.sinceMs;
}

/**
 * @returns the later of the last success and the signature of the trusted timestamp. A time in the future is ignored, because
 *   the clock was set back and the age of that success is unknown
 */
function findLastProofMs({ contact, signedAtMs }: FreshnessFacts, nowMs: number): number | undefined {
  const { verifiedAtMs } = contact;
  const known = [verifiedAtMs, signedAtMs].filter((one) => one !== undefined && one <= nowMs);
  return known.length === 0 ? undefined : Math.max(...known.map(Number));
}

function findFirstExpired(roles: readonly TrustedRole[], nowMs: number): TrustedRole | undefined {
  return roles.filter((one) => one.expiresAtMs <= nowMs).sort((a, b) => a.expiresAtMs - b.expiresAtMs)[0];
}

/** Refused metadata outranks expired metadata, because it can be an attack; both outrank age. */
function judgeState(
  { failing, refused }: Contact,
  expired: TrustedRole | undefined,
  isStale: boolean,
): Freshness {
  if (refused !== undefined) return 'refused';
  // The offered metadata can be expired while the trusted metadata is not.
  if (expired !== undefined || failing?.code === 'METADATA_EXPIRED') return 'frozen';
  return isStale ? 'stale' : 'fresh';
}

/** @returns POLICY_STALE, as status, history and the log report it */
export function createStalePolicyError(report: FreshnessReport, maxStaleMs: number | undefined): WritError {
  const { state, ageMs = 0, failing, refused, overdueSinceMs } = report;
  const code = refused?.code ?? failing?.code;
  const why = code === undefined ? '' : ` [${code}]`;
  const age = ageMs < 120_000 ? `${Math.floor(ageMs / 1000)} s` : `${Math.floor(ageMs / 60_000)} minutes`;
  // After a refresh, or after the clock was set back, the age is below `maxStale`; only the agent ends the period.
  const isYounger = overdueSinceMs !== undefined && maxStaleMs !== undefined && ageMs <= maxStaleMs;
  const text = isYounger
    ? `policy was older than maxStale from ${utcTimeText(overdueSinceMs)} on; the end is not recorded yet`
    : `policy was last proven current ${age} ago, longer than maxStale`;
  return new WritError('POLICY_STALE', `${text}${why}`, { facts: { state, ageMs, maxStaleMs, code } });
}
