// A lost record or manifest of a kept release, written again in its place: each file whole, through staging, so that a crash
// leaves nothing. Where what it says comes from, and whether it may, is the repair's.
import { dirname, join } from 'node:path';
import { encodeManifest, type Manifest } from '../../core/release/manifest.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';
import { releaseName } from '../state/paths.js';
import { manifestFile, recordFile, recordText, releasePath, voucherFile } from './release-records.js';

type Keeper = Pick<Host, 'paths' | 'durable' | 'clock'>;

/** Writes a lost record in its place, the entry last: until it is there, the record is as damaged as before. */
export function renewRecord(host: Keeper, target: SignedTarget, staging: string): void {
  const { bundle, serial, manifest } = target.release;
  const kept = { bundle, release: releaseName(serial, manifest.digest), staging };
  for (const [index, { bytes }] of target.vouchedBy.chain.entries())
    renewFile(host, kept, { name: voucherFile(index), bytes });
  const text = recordText({ target, stagedAtMs: host.clock.nowMs() });
  renewFile(host, kept, { name: recordFile, bytes: text });
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
