// Holds every entry of an archive to the rules, in this order: path, mode, the signed manifest, its next file.
// Decides; the tree writer writes. Nothing is written before the manifest has the signed digest.

import { WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { requireManifestLength, requireRatio } from '../../core/release/archive-bounds.js';
import { entryRules, judgeEntryPath } from '../../core/release/entry-rules.js';
import {
  type Manifest,
  type ManifestFile,
  manifestDigest,
  manifestName,
  parseManifest,
} from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { TarEntry, TarVisitor } from '../../core/release/tar-reader.js';
import type { TreeWriter } from './stage-tree.js';

export interface ProvenManifest {
  readonly manifest: Manifest;
  readonly bytes: Buffer;
}

export interface BundleVisitorOptions {
  readonly release: ReleaseInfo;
  /** Signed length of the packed archive, for the ratio. */
  readonly archiveBytes: number;
  readonly limits: ArchiveLimits;
  readonly tree: TreeWriter;
}

export interface BundleVisitor extends TarVisitor {
  /** Says that the archive has ended. @throws WritError MANIFEST_MISMATCH, ARCHIVE_MALFORMED if something is missing */
  finish(): ProvenManifest;
}

const plainMode = 0o644;
const executableFileMode = 0o755;

/** @throws (its methods) WritError ENTRY_REFUSED, ARCHIVE_*, MANIFEST_*, DISK_* */
export function createBundleVisitor(options: BundleVisitorOptions): BundleVisitor {
  return new Visitor(options);
}

class Visitor implements BundleVisitor {
  readonly #options: BundleVisitorOptions;
  #manifest = Buffer.alloc(0);
  #manifestDone = 0;
  #proven: ProvenManifest | undefined;
  #next = 0;

  constructor(options: BundleVisitorOptions) {
    this.#options = options;
  }

  begin(entry: TarEntry): void {
    if (this.#proven === undefined) this.#beginManifest(entry);
    else this.#beginFile(entry, this.#proven.manifest);
  }

  #beginFile(entry: TarEntry, manifest: Manifest): void {
    const file = manifest.files[this.#next];
    // A path of the manifest was judged when that was parsed: only another one is judged here, to say what is wrong with it.
    const isNext = file !== undefined && entry.path.equals(Buffer.from(file.path));
    const path = isNext ? file.path : acceptedPath(entry.path, this.#options.limits);
    requireMode(path, entry.mode);
    requireSame(file, entry, path);
    this.#next += 1;
    this.#options.tree.open(file);
  }

  data(chunk: Buffer): void {
    if (this.#proven !== undefined) this.#options.tree.write(chunk);
    // The reader lends its bytes; the manifest must outlive the chunk.
    else this.#manifestDone += chunk.copy(this.#manifest, this.#manifestDone);
  }

  end(): void {
    if (this.#proven !== undefined) this.#options.tree.close();
    else this.#endManifest();
  }

  #endManifest(): void {
    this.#proven = { bytes: this.#manifest, manifest: this.#proveManifest(this.#manifest) };
    this.#options.tree.requireRoom(this.#proven.manifest);
  }

  finish(): ProvenManifest {
    if (this.#proven === undefined) throw notFirst('nothing');
    const missing = this.#proven.manifest.files[this.#next];
    if (missing !== undefined) throw mismatch(`${missing.path} is missing`, { path: missing.path });
    return this.#proven;
  }

  #beginManifest({ path, sizeBytes, mode }: TarEntry): void {
    const { release, limits, archiveBytes } = this.#options;
    if (path.toString('latin1') !== manifestName) throw notFirst(acceptedPath(path, limits));
    requireMode(manifestName, mode);
    requireManifestLength(sizeBytes, archiveBytes, limits);
    if (sizeBytes !== release.manifest.length) {
      throw wrongManifest(release.manifest.length, sizeBytes);
    }
    this.#manifest = Buffer.alloc(sizeBytes);
  }

  #proveManifest(bytes: Buffer): Manifest {
    const { release, limits, archiveBytes } = this.#options;
    const digest = manifestDigest(bytes);
    // Before it is parsed: what nobody signed is not looked into.
    if (digest !== release.manifest.digest) throw wrongManifest(release.manifest.digest, digest);
    const manifest = parseManifest(bytes, limits);
    const unpackedBytes = manifest.files.reduce((total, file) => total + file.sizeBytes, bytes.length);
    // Every later entry is held to its size in the manifest, so this one sum bounds all that is unpacked.
    requireRatio(unpackedBytes, archiveBytes, limits);
    return manifest;
  }
}

function acceptedPath(bytes: Buffer, limits: ArchiveLimits): string {
  const verdict = judgeEntryPath(bytes, limits);
  if (verdict.kind === 'accepted') return verdict.path;
  const shown = JSON.stringify(bytes.toString('utf8').slice(0, 200));
  throw new WritError('ENTRY_REFUSED', `the path ${shown} ${entryRules[verdict.rule]}`, {
    facts: { path: shown, rule: verdict.rule },
  });
}

/** Two modes exist. Anything else is a set-uid bit, a file for everybody to write, or somebody else's tar. */
function requireMode(path: string, mode: number): void {
  if (mode === plainMode || mode === executableFileMode) return;
  throw new WritError('ENTRY_REFUSED', `${path} has the mode ${mode.toString(8)}`, {
    facts: { path, expected: '644 or 755', actual: mode.toString(8) },
  });
}

function requireSame(
  file: ManifestFile | undefined,
  { sizeBytes, mode }: TarEntry,
  path: string,
): asserts file is ManifestFile {
  if (file === undefined) throw mismatch(`${path} is not in the manifest`, { path });
  if (file.path !== path) {
    throw mismatch(`${path} is where the manifest has ${file.path}`, {
      path,
      expected: file.path,
      actual: path,
    });
  }
  if (file.sizeBytes !== sizeBytes) {
    throw mismatch(`${path} has a different size`, { path, expected: file.sizeBytes, actual: sizeBytes });
  }
  if (file.executable !== (mode === executableFileMode)) {
    throw mismatch(`the executable bit of ${path} differs`, { path, actual: mode.toString(8) });
  }
}

function mismatch(what: string, facts: Record<string, unknown>): WritError {
  return new WritError('MANIFEST_MISMATCH', `archive and manifest differ: ${what}`, { facts });
}

function wrongManifest(expected: string | number, actual: string | number): WritError {
  return new WritError('MANIFEST_DIGEST', 'the manifest in the archive is not the signed one', {
    facts: { expected, actual },
  });
}

function notFirst(actual: string): WritError {
  return new WritError('ARCHIVE_MALFORMED', 'the archive does not begin with its manifest', {
    facts: { expected: manifestName, actual },
  });
}
