// Finds the signed target of a release that this host retains: from its record, otherwise from the trusted metadata. Only
// the signed part of a record is trusted; its other members must match it. Reads only.
import { isWritError, orUndefined, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { recallSignedTarget, type SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';
import { type HostPaths, releaseDirectoryName } from '../state/paths.js';
import { readRecord, readVouchers } from './release-records.js';
import { findTrustFailure } from './untrusted-releases.js';

/**
 * Reads the signed target from the record of a retained release.
 * @param release directory name of the release
 * @throws WritError STATE_DAMAGED if the record differs from its signed part, or one of them is unreadable
 */
export function readRecordedTarget(paths: HostPaths, bundle: string, release: string): SignedTarget {
  const record = readRecord(paths, bundle, release);
  const { channel, bundle: named } = record.release;
  const vouchers = readVouchers(paths, bundle, release);
  const target =
    named === bundle
      ? orUndefined(() => recallSignedTarget(record.target, vouchers, { bundle, channel }))
      : undefined;
  const isTrue =
    target !== undefined &&
    target.digest === record.archive.digest &&
    target.length === record.archive.length &&
    nameOf(target) === release &&
    isSame(
      encodeReleaseInfo(target.release),
      encodeReleaseInfo(withKnownMembers(record.release, target.release)),
    );
  if (isTrue) return target;
  throw new WritError('STATE_DAMAGED', `the record of ${bundle} ${release} does not match what was signed`, {
    facts: { bundle, release },
  });
}

/** Adds `requires` and `fixes`, which an older Writ did not record. No decision about a retained release depends on them. */
function withKnownMembers(record: ReleaseInfo, { requires, fixes }: ReleaseInfo): ReleaseInfo {
  const { requires: _, fixes: __, ...rest } = record;
  return { ...rest, ...given({ requires, fixes }) };
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function nameOf({ release }: SignedTarget): string {
  return releaseDirectoryName(release.serial, release.manifest.digest);
}

export interface RecordedTargetRequest {
  readonly bundle: string;
  readonly channel: string;
  /** Directory name of the release, `<serial>-<digest12>`. */
  readonly release: string;
}

/**
 * Finds the signed target for the repair of a release. The repair may only restore the same release, and only while the
 * current keys trust it.
 * @throws WritError RELEASE_UNTRUSTED; STATE_DAMAGED if neither the record nor the trusted metadata has it
 */
export function findRepairTarget(
  host: Host,
  { bundle, channel, release }: RecordedTargetRequest,
): SignedTarget {
  try {
    const target = readRecordedTarget(host.paths, bundle, release);
    const untrusted = findTrustFailure(host, bundle, release);
    if (untrusted === undefined) return target;
    throw new WritError('RELEASE_UNTRUSTED', `${bundle} ${target.release.serial} ${untrusted.reason}`, {
      facts: { bundle, serial: target.release.serial },
    });
  } catch (error) {
    if (!isWritError(error) || error.code !== 'STATE_DAMAGED') throw error;
    const listed = findListedTarget(host, { bundle, channel, release });
    if (listed !== undefined) return listed;
    throw error;
  }
}

/** @returns the target from the trusted metadata, without a record; undefined if the metadata lists another release or none */
export function findListedTarget(
  host: Host,
  { bundle, channel, release }: RecordedTargetRequest,
): SignedTarget | undefined {
  const target = orUndefined(() => host.client.knownTarget(bundle, channel));
  return target !== undefined && nameOf(target) === release ? target : undefined;
}
