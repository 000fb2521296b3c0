// Writes a lost record or manifest of a retained release again. Each file is written completely in staging and renamed, so
// that a crash leaves no partial file. The repair decides whether to do it and from which source. A pull also renews the
// record of an active release if the keys that signed the recorded metadata were replaced.
import { dirname, join } from 'node:path';
import { isWritError, orUndefined } from '../../core/errors.js';
import { encodeManifest, type Manifest } from '../../core/release/manifest.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';
import { releaseDirectoryName } from '../state/paths.js';
import { activeGenerationNumber, readGeneration } from './generations.js';
import { findListedTarget } from './recorded-target.js';
import { manifestFile, recordFile, recordText, releasePath, voucherFile } from './release-records.js';
import { findOutdatedRecord } from './untrusted-releases.js';

type Keeper = Pick<Host, 'paths' | 'durable' | 'clock'>;

/**
 * Writes a lost record again. The entry is written last: until it exists, the record counts as damaged.
 * @param options.stagedAtMs epoch milliseconds; now if left out
 * @throws WritError DISK_*
 */
export function renewRecord(
  host: Keeper,
  target: SignedTarget,
  { staging, stagedAtMs = host.clock.nowMs() }: { readonly staging: string; readonly stagedAtMs?: number },
): void {
  const { bundle, serial, manifest } = target.release;
  const kept = { bundle, release: releaseDirectoryName(serial, manifest.digest), staging };
  for (const [index, { bytes }] of target.vouchedBy.chain.entries())
    renewFile(host, kept, { name: voucherFile(index), bytes });
  renewFile(host, kept, { name: recordFile, bytes: recordText({ target, stagedAtMs }) });
}

/**
 * Renews the record of each active release that the current metadata lists, if its record alone no longer verifies.
 * Otherwise the release becomes untrusted as soon as the metadata no longer lists it. An error is only logged, because the
 * policy is unchanged.
 * @param staging creates a directory; called only before a record is written
 */
export function renewOutdatedRecords(host: Host, staging: () => string): void {
  const active = activeGenerationNumber(host.paths);
  const generation = active === undefined ? undefined : orUndefined(() => readGeneration(host.paths, active));
  for (const { bundle, tree } of generation?.entries ?? []) {
    try {
      renewOutdatedRecord(host, { bundle, release: tree.release, staging });
    } catch (error) {
      if (!isWritError(error)) throw error;
      host.log.warn({ err: error, bundle }, 'the record of the active release could not be renewed');
    }
  }
}

function renewOutdatedRecord(
  host: Host,
  { bundle, release, staging }: Omit<Kept, 'staging'> & { readonly staging: () => string },
): void {
  const record = findOutdatedRecord(host, bundle, release);
  if (record === undefined) return;
  const target = findListedTarget(host, { bundle, channel: record.release.channel, release });
  if (target === undefined) return;
  renewRecord(host, target, { staging: staging(), stagedAtMs: record.stagedAtMs });
}

/** Writes a lost manifest again. @param kept `manifest` must match its signed digest. @throws WritError DISK_* */
export function renewManifest(host: Renewer, { manifest, ...kept }: Kept & { manifest: Manifest }): void {
  renewFile(host, kept, { name: manifestFile, bytes: encodeManifest(manifest) });
}

type Renewer = Pick<Host, 'paths' | 'durable'>;

interface Kept {
  readonly bundle: string;
  readonly release: string;
  /** Directory of this cycle; a start removes partial files that a crash left there. */
  readonly staging: string;
}

function renewFile(
  { paths, durable }: Renewer,
  { bundle, release, staging }: Kept,
  { name, bytes }: { readonly name: string; readonly bytes: string | Uint8Array },
): void {
  const place = releasePath(paths, bundle, release);
  durable.ensureDirectory('repair.record-bundle', dirname(place), 0o700);
  durable.ensureDirectory('repair.record-directory', place, 0o700);
  const written = join(staging, `renewed-${bundle}-${name}`);
  durable.createFile('repair.kept-write', written, bytes, 0o600);
  durable.rename('repair.kept-place', written, join(place, name));
}
