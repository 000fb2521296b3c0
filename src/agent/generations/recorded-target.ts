// The signed target of a release that this host has already: out of its record, else out of the trusted metadata. A
// record is believed for what its signed part says, never for what stands beside it. Reads only.
import { isWritError, orUndefined, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { recallSignedTarget, type SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';
import { type HostPaths, releaseDirectoryName } from '../state/paths.js';
import { readRecord, readVouchers } from './release-records.js';
import { untrustedRelease } from './vouching.js';

/**
 * @param release directory of the kept release
 * @returns the target as signed
 * @throws WritError STATE_DAMAGED when the record and its signed part differ, or one of them cannot be read
 */
export function recordedTarget(paths: HostPaths, bundle: string, release: string): SignedTarget {
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
    isSame(encodeReleaseInfo(target.release), encodeReleaseInfo(ofToday(record.release, target.release)));
  if (isTrue) return target;
  throw new WritError('STATE_DAMAGED', `the record of ${bundle} ${release} does not match what was signed`, {
    facts: { bundle, release },
  });
}

/** A Writ that did not know `requires` and `fixes` has kept none, and no decision depends on those of a kept release. */
function ofToday(record: ReleaseInfo, { requires, fixes }: ReleaseInfo): ReleaseInfo {
  const { requires: _, fixes: __, ...rest } = record;
  return { ...rest, ...given({ requires, fixes }) };
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function nameOf({ release }: SignedTarget): string {
  return releaseDirectoryName(release.serial, release.manifest.digest);
}

export interface TargetWish {
  readonly bundle: string;
  readonly channel: string;
  /** Directory of the release: serial and digest. */
  readonly release: string;
}

/**
 * Finds what a release must be, to make it again: the very same one, and only while it is vouched for.
 * @throws WritError RELEASE_UNTRUSTED; STATE_DAMAGED when neither the record nor the trusted metadata has it
 */
export function targetToRepair(host: Host, { bundle, channel, release }: TargetWish): SignedTarget {
  try {
    const target = recordedTarget(host.paths, bundle, release);
    const untrusted = untrustedRelease(host, bundle, release);
    if (untrusted === undefined) return target;
    throw new WritError('RELEASE_UNTRUSTED', `${bundle} ${target.release.serial} ${untrusted.reason}`, {
      facts: { bundle, serial: target.release.serial },
    });
  } catch (error) {
    if (!isWritError(error) || error.code !== 'STATE_DAMAGED') throw error;
    const listed = listedTarget(host, { bundle, channel, release });
    if (listed !== undefined) return listed;
    throw error;
  }
}

/** @returns the target as the trusted metadata lists it, which needs no record; undefined when another release is listed */
export function listedTarget(host: Host, { bundle, channel, release }: TargetWish): SignedTarget | undefined {
  const target = orUndefined(() => host.client.knownTarget(bundle, channel));
  return target !== undefined && nameOf(target) === release ? target : undefined;
}
