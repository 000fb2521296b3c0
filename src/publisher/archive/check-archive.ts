// The archive part of `writ repo check`, for one listed target: its entry, its bytes against the signed length and digest,
// every file in it against the manifest, and the manifest against the signed digest.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { digestFromHex, digestHex, targetPath } from '../../core/names.js';
import { parseReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { requireAcceptedSerial } from '../../core/release/serial.js';
import type { TargetFile } from '../../core/tuf/tuf-metadata.js';
import type { More } from '../../core/work-report.js';
import { filesOf, type ReleaseFile } from '../repository/release-files.js';
import { pathOf, type RepositoryLayout } from '../repository/repository-layout.js';
import { digestOfFile } from './archive-bytes.js';
import { inspectArchive } from './archive-reader.js';

interface ArchiveCheck {
  readonly layout: RepositoryLayout;
  readonly path: string;
  readonly file: TargetFile;
  readonly limits: ArchiveLimits;
  /** Digests of archives that were verified completely. An archive with a second name is not unpacked again. */
  readonly unpacked: Set<string>;
  /** Receives the numbers of digested bytes of its files, and of unpacked bytes of its archive. */
  readonly more?: More;
}

/**
 * Checks one listed target.
 * @returns its release
 * @throws WritError TARGET_MALFORMED, TARGET_MISSING, DOWNLOAD_TRUNCATED, DOWNLOAD_TOO_LARGE, DOWNLOAD_DIGEST,
 *   MANIFEST_DIGEST, and the errors of inspectArchive
 */
export async function checkArchive(check: ArchiveCheck): Promise<ReleaseInfo> {
  const { layout, path, file, limits, unpacked, more } = check;
  const release = parseReleaseInfo(file.custom, path);
  requireAcceptedSerial(release, path);
  const digest = digestFromHex(file.hashes['sha256']);
  if (targetPath(release.bundle, release.channel) !== path || digest === undefined) {
    const member = digest === undefined ? 'hashes.sha256' : 'bundle or channel';
    throw new WritError('TARGET_MALFORMED', `${path}: ${member} is missing or wrong`, {
      facts: { target: path, member },
    });
  }
  for (const one of filesOf({ release, file })) await requireBytes(check, one);
  const place = { kind: 'archive', bundle: release.bundle, channel: release.channel, digest } as const;
  const archive = join(layout.targets, pathOf(place));
  const { digest: expected, length } = release.manifest;
  const known = `${digest} ${expected} ${length}`;
  if (!unpacked.has(known)) {
    const { manifestDigest, manifestBytes } = await inspectArchive(archive, limits, more);
    if (manifestDigest !== expected || manifestBytes !== length) {
      throw new WritError('MANIFEST_DIGEST', `${path}: the manifest does not match the signed one`, {
        facts: { expected, actual: manifestDigest },
      });
    }
    unpacked.add(known);
  }
  return release;
}

async function requireBytes(
  { layout, path, more }: ArchiveCheck,
  { place, length }: ReleaseFile,
): Promise<void> {
  const { whole, named, facts } = requireLength({ layout, path }, { place, length });
  const hashes = { expected: digestHex(place.digest), actual: await digestOfFile(whole, more) };
  if (hashes.actual === hashes.expected) return;
  throw new WritError('DOWNLOAD_DIGEST', `the digest of ${named} does not match the signed one`, {
    facts: { ...facts, ...hashes },
  });
}

/**
 * Checks that a file of a release exists with the signed length; its bytes are not read.
 * @throws WritError TARGET_MISSING, DOWNLOAD_TRUNCATED, DOWNLOAD_TOO_LARGE
 */
export function requireLength(
  { layout, path }: Pick<ArchiveCheck, 'layout' | 'path'>,
  { place, length }: ReleaseFile,
) {
  const file = pathOf(place);
  const whole = join(layout.targets, file);
  const size = sizeOf(whole);
  const facts = { target: path, file, expected: length, actual: size ?? 0 };
  // A release has several deltas, so an operator needs the name of the file to restore it.
  const named = `the ${place.kind} targets/${file}`;
  if (size === undefined) throw new WritError('TARGET_MISSING', `${named} is missing`, { facts });
  if (size !== length) {
    const code = size < length ? 'DOWNLOAD_TRUNCATED' : 'DOWNLOAD_TOO_LARGE';
    throw new WritError(code, `${named} has ${size} bytes, but ${length} were signed`, {
      facts,
    });
  }
  return { whole, named, facts };
}

/** @returns undefined for a file that is not regular, because opening a FIFO would block */
function sizeOf(path: string): number | undefined {
  try {
    const status = fs.lstatSync(path);
    return status.isFile() ? status.size : undefined;
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return undefined;
    throw error;
  }
}
