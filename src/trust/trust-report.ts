// The result of a refresh and the status of the trust store: versions, expiries, and warnings about the clock. Pure.
import { isWritError, WritError } from '../core/errors.js';
import { timeLeft } from '../core/text/iso-time.js';
import { signedAtMsOf, type TrustedSet } from '../core/tuf/trusted-set.js';
import { type ParsedFile, type TopLevelRole, topLevelRoles } from '../core/tuf/tuf-metadata.js';
import type { MirrorFailure } from './mirrors/mirror-failures.js';

export interface RoleStatus {
  readonly version: number;
  /** Epoch milliseconds. */
  readonly expiresAtMs: number;
}

export interface TrustStatus {
  /** The trusted roles; some are missing after a first refresh that failed. */
  readonly roles: Readonly<Partial<Record<TopLevelRole, RoleStatus>>>;
  /** Loaded delegated roles, by name; undefined without any. */
  readonly delegated?: Readonly<Record<string, RoleStatus>>;
  /** When the server signed the timestamp in use, epoch milliseconds; undefined from other publishers. */
  readonly signedAtMs?: number;
  /** Greatest accepted `signedAt`, epoch milliseconds: the real time cannot be earlier. */
  readonly clockFloorMs?: number;
}

interface RefreshWarning {
  readonly code: 'CLOCK_BEHIND';
  readonly message: string;
  readonly facts: { readonly clockFloor: string; readonly behindMs: number };
}

export interface RefreshResult {
  /** True if root, snapshot or targets changed in this refresh; the caller compares what it needs. */
  readonly changed: boolean;
  readonly warnings: readonly RefreshWarning[];
  readonly roles: Readonly<Record<TopLevelRole, RoleStatus>>;
  readonly signedAtMs?: number;
  /** Number of requests to the mirror that succeeded. */
  readonly requests: number;
  /** URL of the mirror that succeeded. */
  readonly mirror: string;
  /** Failures of the mirrors before it. */
  readonly failures: readonly MirrorFailure[];
}

/**
 * @returns roles: version and expiry of each trusted role, missing ones left out; delegated: those of the loaded delegated roles;
 *   signedAtMs and clockFloorMs, left out if unknown
 */
export function describeTrust(set: TrustedSet): TrustStatus {
  const roles = topLevelRoles.flatMap((role) => {
    const file = set[role];
    return file === undefined ? [] : [[role, statusOf(file)] as const];
  });
  const signedAtMs = signedAtMsOf(set.timestamp);
  const { clockFloorMs } = set;
  const delegated = delegatedOf(set);
  return {
    roles: Object.fromEntries(roles),
    ...(delegated.length === 0 ? {} : { delegated: Object.fromEntries(delegated) }),
    ...(signedAtMs === undefined ? {} : { signedAtMs }),
    ...(clockFloorMs === undefined ? {} : { clockFloorMs }),
  };
}

/** Leaves out roles with a version that the snapshot no longer lists. */
function delegatedOf({ delegated, snapshot }: TrustedSet): (readonly [string, RoleStatus])[] {
  const meta = snapshot?.signed.meta ?? {};
  return [...(delegated ?? [])].flatMap(([name, file]) => {
    const entry = Object.hasOwn(meta, `${name}.json`) ? meta[`${name}.json`] : undefined;
    return entry?.version === file.signed.version ? [[name, statusOf(file)] as const] : [];
  });
}

function statusOf({ signed, expiresAtMs }: ParsedFile<TopLevelRole>): RoleStatus {
  return { version: signed.version, expiresAtMs };
}

/** @returns the result of a successful refresh, with a warning if the clock of the host is behind */
export function describeRefresh(
  before: TrustedSet,
  { after, nowMs, requests }: { after: TrustedSet; nowMs: number; requests: number },
): Omit<RefreshResult, 'mirror' | 'failures'> {
  const status = describeTrust(after);
  return {
    ...status,
    // All four exist after a successful refresh.
    roles: status.roles as RefreshResult['roles'],
    changed: (['root', 'snapshot', 'targets'] as const).some((role) => after[role] !== before[role]),
    warnings: clockWarnings(after.clockFloorMs, nowMs),
    requests,
  };
}

/** Differences of the clocks up to this are normal; the clock floor applies in any case. */
const maxClockSkewMs = 60_000;

/** @returns a warning if a clock at `nowMs` is behind the clock floor */
export function clockWarnings(clockFloorMs: number | undefined, nowMs: number): readonly RefreshWarning[] {
  if (clockFloorMs === undefined) return [];
  const behindMs = clockFloorMs - nowMs;
  if (behindMs <= maxClockSkewMs) return [];
  const clockFloor = new Date(clockFloorMs).toISOString();
  const message = `the clock of this host is behind ${clockFloor}, when the server signed; that time is used`;
  return [{ code: 'CLOCK_BEHIND', message, facts: { clockFloor, behindMs } }];
}

/**
 * Adds the clock of this host to an expiry error if nothing has expired by the clock of the server. The server does not sign its
 * clock, so that it changes a text and never a code.
 * @param aheadMs clock of this host minus clock of the server
 */
export function withClock(error: unknown, aheadMs: number | undefined): unknown {
  if (!isWritError(error) || error.code !== 'METADATA_EXPIRED' || aheadMs === undefined) return error;
  const { code, message, facts, hint, cause } = error;
  if (!(aheadMs >= Number(facts['expiredForMs']))) return error;
  return new WritError(
    code,
    `the clock of this host is ${timeLeft(aheadMs)} ahead of the server: ${message}`,
    {
      facts: { ...facts, clockAheadMs: aheadMs },
      hint: `Check the clock of this host first: timedatectl set-ntp true. If it is right: ${hint}`,
      cause,
    },
  );
}
