// What a refresh, or a look at the store, tells its caller: versions, ends of life, and the clock. Pure.
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
  /** Roles that are trusted now; after a first refresh that failed, some are absent. */
  readonly roles: Readonly<Partial<Record<TopLevelRole, RoleStatus>>>;
  /** Delegated roles that were needed and are at hand, by name; absent without any. */
  readonly delegated?: Readonly<Record<string, RoleStatus>>;
  /** When the server signed the timestamp in use, epoch milliseconds; absent with other publishers. */
  readonly signedAtMs?: number;
  /** Greatest `signedAt` accepted, epoch milliseconds: the world is at least that old. */
  readonly clockFloorMs?: number;
}

interface RefreshWarning {
  readonly code: 'CLOCK_BEHIND';
  readonly message: string;
  readonly facts: { readonly clockFloor: string; readonly behindMs: number };
}

export interface RefreshResult {
  /** Root, snapshot or targets are new since this refresh began; what to do about it is the caller's to compare. */
  readonly changed: boolean;
  readonly warnings: readonly RefreshWarning[];
  readonly roles: Readonly<Record<TopLevelRole, RoleStatus>>;
  readonly signedAtMs?: number;
  /** To the mirror that it came from. */
  readonly requests: number;
  /** URL of the mirror that it came from. */
  readonly mirror: string;
  /** Mirrors that were tried before, and failed. */
  readonly failures: readonly MirrorFailure[];
}

/** @returns versions and ends of life of what is trusted now */
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

/** A role that the snapshot no longer names as it is here is of no use, and of no interest. */
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

/** @returns what a refresh that succeeded tells, with a warning where the clock of the host is behind */
export function describeRefresh(
  before: TrustedSet,
  { after, nowMs, requests }: { after: TrustedSet; nowMs: number; requests: number },
): Omit<RefreshResult, 'mirror' | 'failures'> {
  const status = describeTrust(after);
  return {
    ...status,
    // A refresh that ended well has all four.
    roles: status.roles as RefreshResult['roles'],
    changed: (['root', 'snapshot', 'targets'] as const).some((role) => after[role] !== before[role]),
    warnings: clockWarnings(after.clockFloorMs, nowMs),
    requests,
  };
}

/** Server and host may disagree a little without anything being wrong; the floor counts all the same. */
const maxClockSkewMs = 60_000;

/** @returns what is wrong with a clock that says `nowMs`, if anything */
export function clockWarnings(clockFloorMs: number | undefined, nowMs: number): readonly RefreshWarning[] {
  if (clockFloorMs === undefined) return [];
  const behindMs = clockFloorMs - nowMs;
  if (behindMs <= maxClockSkewMs) return [];
  const clockFloor = new Date(clockFloorMs).toISOString();
  const message = `the clock of this host is behind ${clockFloor}, when the server signed; that time is used`;
  return [{ code: 'CLOCK_BEHIND', message, facts: { clockFloor, behindMs } }];
}

/**
 * Names the clock first where by the server's time nothing has expired. The server's time is not signed: it changes a text, never a code.
 * @param aheadMs this host's clock minus the server's
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
