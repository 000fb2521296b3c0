// Judges the age of an offered release against what this host has accepted before (docs/adr/0002).
// Pure. Signatures, holds and schedules are judged elsewhere.
import type { ErrorCode } from '../../core/error-codes.js';
import { maxCreatedAheadMs } from '../../core/limits.js';
import type { Digest } from '../../core/names.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { maxAcceptedSerials } from '../../core/release/release.js';

/** A release that this host knows: its serial, and the digest of its manifest, which identifies its content. */
export interface KnownRelease {
  readonly serial: number;
  readonly manifestDigest: Digest;
}

export interface AgeFacts {
  readonly offered: ReleaseInfo;
  /** The highest release ever accepted for this bundle and channel. */
  readonly highest?: KnownRelease | undefined;
  /** Serials accepted for this bundle and channel, as `rememberAccepted` keeps them. */
  readonly accepted: readonly number[];
  /** The active release, of any channel. */
  readonly active?: KnownRelease | undefined;
  /**
   * True where the configuration names another channel than that of the active release: this once the offered serial may
   * be below the active one, but not below those accepted on the new channel.
   */
  readonly channelChanged: boolean;
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

export type AgeVerdict =
  | { readonly kind: 'new' }
  /** The offered release is the active one: nothing to do. */
  | { readonly kind: 'current' }
  | {
      readonly kind: 'refused';
      readonly code: Extract<ErrorCode, 'SERIAL_ROLLBACK' | 'SERIAL_REUSED' | 'CREATED_IN_FUTURE'>;
      readonly message: string;
      readonly facts: Readonly<Record<string, string | number>>;
    };

/** Judges one offered release. The serial comes before the time, so that a replayed release is refused with any clock. */
export function judgeAge(facts: AgeFacts): AgeVerdict {
  const { offered, active } = facts;
  if (active?.serial === offered.serial && active.manifestDigest === offered.manifest.digest) {
    return { kind: 'current' };
  }
  return reused(facts) ?? rolledBack(facts) ?? fromTheFuture(facts) ?? { kind: 'new' };
}

/** Refuses a serial with two contents: it was signed twice, or repositories are mixed. Serials are per bundle. */
function reused({ offered, highest, active }: AgeFacts): AgeVerdict | undefined {
  const other = [highest, active].find(
    (known) => known?.serial === offered.serial && known.manifestDigest !== offered.manifest.digest,
  );
  if (other === undefined) return undefined;
  return {
    kind: 'refused',
    code: 'SERIAL_REUSED',
    message: `${offered.bundle}: serial ${offered.serial} was used before with different content`,
    facts: {
      bundle: offered.bundle,
      serial: offered.serial,
      expected: other.manifestDigest,
      actual: offered.manifest.digest,
    },
  };
}

/**
 * A lower serial is a replay, unless every accepted release above it was withdrawn in a signed list: without that list an attacker
 * with an old repository could bring a known vulnerability back.
 */
function rolledBack(facts: AgeFacts): AgeVerdict | undefined {
  const { offered } = facts;
  const withdrawn = new Set(offered.withdrawn);
  const standing = serialsThatBind(facts).filter(
    (serial) => serial > offered.serial && !withdrawn.has(serial),
  );
  if (standing.length === 0 && !isForgotten(facts)) return undefined;
  const highest = standing.reduce((most, serial) => Math.max(most, serial), facts.highest?.serial ?? 0);
  return {
    kind: 'refused',
    code: 'SERIAL_ROLLBACK',
    message: `${offered.bundle}: serial ${offered.serial} is below ${highest}, which this host accepted and which was not withdrawn`,
    facts: {
      bundle: offered.bundle,
      channel: offered.channel,
      expected: `above ${highest}`,
      actual: offered.serial,
    },
  };
}

function serialsThatBind({ accepted, highest, active, channelChanged }: AgeFacts): number[] {
  const serials = [...accepted];
  if (highest !== undefined) serials.push(highest.serial);
  if (active !== undefined && !channelChanged) serials.push(active.serial);
  return serials;
}

/** True below the oldest serial of a full list, where it is not known any more which serials were accepted. */
function isForgotten({ offered, accepted }: AgeFacts): boolean {
  if (accepted.length < maxAcceptedSerials) return false;
  return offered.serial < accepted.reduce((least, serial) => Math.min(least, serial));
}

function fromTheFuture({ offered, nowMs }: AgeFacts): AgeVerdict | undefined {
  const aheadMs = offered.createdAtMs - nowMs;
  if (aheadMs <= maxCreatedAheadMs) return undefined;
  return {
    kind: 'refused',
    code: 'CREATED_IN_FUTURE',
    message: `${offered.bundle}: serial ${offered.serial} was created ${Math.ceil(aheadMs / 1000)} s ahead of this host's time`,
    facts: { bundle: offered.bundle, serial: offered.serial, aheadMs, expected: maxCreatedAheadMs },
  };
}

/**
 * @param accepted the list so far
 * @returns the list with the serial in it: ascending, without duplicates, the newest maxAcceptedSerials
 */
export function rememberAccepted(accepted: readonly number[], serial: number): number[] {
  return [...new Set([...accepted, serial])].sort((a, b) => a - b).slice(-maxAcceptedSerials);
}
