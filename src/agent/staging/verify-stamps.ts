// Verifies the stamps of a release: without them, each stamped file has the signed digest, and the tree has the digest of the source.
// Otherwise a signer could present a new policy as an old one to every check that judges a change.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { digestFromHex } from '../../core/names.js';
import { encodeManifest, type Manifest, manifestDigest } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { maxFilledBytes, type Stamp, sourceName, unfilled, unstamped } from '../../core/release/stamps.js';
import { readSmallFile } from '../../platform/read-file.js';

/**
 * @param tree directory with the files of the manifest, all of them verified
 * @throws WritError MANIFEST_MISMATCH for a wrong stamp or another source
 */
export function verifyStamps(release: ReleaseInfo, manifest: Manifest, tree: string): void {
  const { stamped, bundle, serial } = release;
  if (stamped === undefined) return;
  const malformed = (what: string): WritError =>
    new WritError('MANIFEST_MISMATCH', `${bundle} ${serial}: its stamps are wrong: ${what}`, {
      facts: { bundle, serial },
    });
  const values = { serial: String(serial), source: sourceName(release) };
  for (const stamp of stamped.stamps) {
    const file = manifest.files.find(({ path }) => path === stamp.path);
    if (file === undefined) throw malformed(`there is no file ${stamp.path}`);
    if (!isStampCorrect(join(tree, stamp.path), stamp, values))
      throw malformed(`${stamp.path} was a different file before`);
  }
  const digest = manifestDigest(encodeManifest(unstamped(manifest, stamped.stamps)));
  if (digest !== stamped.source) throw malformed('the source digest is of another tree');
}

function isStampCorrect(path: string, stamp: Stamp, values: Parameters<typeof unfilled>[2]): boolean {
  const read = readSmallFile(path, { maxBytes: maxFilledBytes });
  const before = read.kind === 'read' ? unfilled(read.bytes, stamp.at, values) : undefined;
  if (before === undefined || before.length !== stamp.length) return false;
  return digestFromHex(createHash('sha256').update(before).digest('hex')) === stamp.digest;
}
