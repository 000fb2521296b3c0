// Describes a delta for `writ inspect`. A delta names no release, so that its base and its release come from the signed
// metadata of the repository around it. Reads only. Reports only signed facts, and facts that a trial application proved.
import * as fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { deltaMagic, malformedDelta } from '../../core/delta/delta-format.js';
import { createDeltaReader, type DeltaVisitor, maxDecodedBytes } from '../../core/delta/delta-reader.js';
import { orUndefined } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex } from '../../core/names.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { digestOfFile } from '../archive/archive-bytes.js';
import { readManifestOf } from '../archive/archive-reader.js';
import { decodedPieces, readDelta } from '../delta/apply-delta.js';
import { checkDeltas } from '../delta/check-deltas.js';
import { releaseHistory } from '../release/release-history.js';
import type { ListedRelease } from '../repository/listing.js';
import { deltasOf } from '../repository/release-files.js';
import { layoutOf, pathOf, type RepositoryLayout } from '../repository/repository-layout.js';
import { readRepositoryState } from '../repository/repository-state.js';

export type DeltaReport = Awaited<ReturnType<typeof inspectDelta>>;

/**
 * Describes a delta file, with the release to which the repository around it lists it. Writes nothing.
 * @returns its size, its digest, and its size when decompressed, in bytes. `listed` is undefined outside a repository, or if no
 *   release lists this delta; else it has the release and its base. `listed.made` is absent without the archive of the base;
 *   `isTried` states whether the delta was applied
 * @throws WritError DELTA_MALFORMED for another file; MANIFEST_MALFORMED or ARCHIVE_LIMIT for the signed manifest; DISK_*; and
 *   the system's error (ENOENT) for a missing file
 */
export async function inspectDelta(path: string, limits: ArchiveLimits) {
  const status = fs.lstatSync(path);
  if (!status.isFile()) throw malformedDelta('it is not a regular file');
  const bytes = status.size;
  if (bytes > limits.maxArchiveBytes) throw malformedDelta('it is too large', { actual: bytes });
  const decodedBytes = await decodedLength(path, maxDecodedBytes(bytes, limits));
  const digest = digestFromHex(await digestOfFile(path)) as Digest;
  const listed = findListed(path, digest);
  return { bytes, digest, decodedBytes, listed: listed && (await describe(path, listed, limits)) };
}

async function decodedLength(path: string, maxBytes: number): Promise<number> {
  let length = 0;
  let head = Buffer.alloc(0);
  for await (const piece of decodedPieces(path)) {
    length += piece.length;
    if (length > maxBytes) throw malformedDelta('it unpacks to too much for its length');
    if (head.length < deltaMagic.length) {
      head = Buffer.concat([head, piece.subarray(0, deltaMagic.length - head.length)]);
    }
  }
  if (!head.equals(deltaMagic)) throw malformedDelta('it does not begin like a Writ delta');
  return length;
}

interface ListedDelta {
  readonly layout: RepositoryLayout;
  readonly delta: DeltaInfo;
  readonly release: ListedRelease;
  readonly history: readonly ListedRelease[];
}

/** @returns undefined for a file outside a repository, or where no release lists this delta */
function findListed(path: string, digest: Digest): ListedDelta | undefined {
  const directory = dirname(resolve(path));
  const layout = layoutOf(dirname(dirname(directory)));
  const history = orUndefined(() => releaseHistory(readRepositoryState(layout), basename(directory))) ?? [];
  const isThis = (release: ListedRelease): boolean =>
    deltasOf(release).some(({ place }) => join(layout.targets, pathOf(place)) === resolve(path));
  const release = history.find(isThis);
  const delta = release?.release.deltas?.find((one) => one.digest === digest);
  return release && delta && { layout, delta, release, history };
}

async function describe(path: string, listed: ListedDelta, limits: ArchiveLimits) {
  const { layout, delta, history } = listed;
  const { release } = listed.release;
  const { bundle, channel, serial, manifest } = release;
  const base = history.find((one) => one.release.manifest.digest === delta.from);
  const read = base && (await readManifestOf(layout, base, limits));
  const untried = await checkDeltas({
    ...{ layout, history, limits },
    release: { ...release, deltas: [delta] },
  });
  const made = { files: 0, copies: 0, copiedBytes: 0, literalBytes: 0 };
  if (read !== undefined) {
    const reading = { base: read, manifest, deltaBytes: delta.length, limits };
    await readDelta(path, createDeltaReader(reading, countingVisitor(made)));
  }
  return {
    ...{ bundle, channel, serial },
    ...{ from: delta.from, fromSerial: base?.release.serial, to: manifest.digest },
    /** Absent where the archive of the base is missing. */
    made: read && made,
    isTried: untried === 0,
  };
}

function countingVisitor(made: Record<'files' | 'copies' | 'copiedBytes' | 'literalBytes', number>) {
  return {
    manifest: () => undefined,
    open: () => {
      made.files += 1;
    },
    literal: (chunk) => {
      made.literalBytes += chunk.length;
    },
    copy: (_offset, length) => {
      made.copies += 1;
      made.copiedBytes += length;
    },
    close: () => undefined,
  } satisfies DeltaVisitor;
}
