// A lost record or manifest of a kept release, written again in its place: each file whole, through staging, so that a crash
// leaves nothing. Where what it says comes from, and whether it may, is the repair's. After a pull, the same for the record
// of an active release that the current metadata lists, because the keys that signed the recorded vouchers were replaced.
import { dirname, join } from 'node:path';
import { isWritError, orUndefined } from '../../core/errors.js';
import { encodeManifest, type Manifest } from '../../core/release/manifest.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';
import { releaseDirectoryName } from '../state/paths.js';
import { activeGenerationNumber, readGeneration } from './generations.js';
import { listedTarget } from './recorded-target.js';
import { manifestFile, recordFile, recordText, releasePath, voucherFile } from './release-records.js';
import { findOutdatedRecord } from './vouching.js';

type Keeper = Pick<Host, 'paths' | 'durable' | 'clock'>;

/** Writes a lost record in its place, the entry last: until it is there, the record is as damaged as before. */
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
 * Renews the record of each active release that is listed now and that its record alone no longer proves. Otherwise the
 * release becomes untrusted as soon as the metadata no longer lists it. An error is logged, because the policy is unchanged.
 * @param staging called only where a record is written
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
  const target = listedTarget(host, { bundle, channel: record.release.channel, release });
  if (target === undefined) return;
  renewRecord(host, target, { staging: staging(), stagedAtMs: record.stagedAtMs });
}

/** Writes a lost manifest in its place. @param kept `manifest`: proven by its signed digest */
export function renewManifest(host: Renewer, { manifest, ...kept }: Kept & { manifest: Manifest }): void {
  renewFile(host, kept, { name: manifestFile, bytes: encodeManifest(manifest) });
}

type Renewer = Pick<Host, 'paths' | 'durable'>;

interface Kept {
  readonly bundle: string;
  readonly release: string;
  /** A crash leaves what is half written there, from where it is swept. */
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
