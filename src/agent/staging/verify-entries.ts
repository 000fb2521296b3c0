// Verifies each entry of an archive, in this order: path, mode, the signed manifest, its next file. The tree writer writes the
// files, and none before the manifest matches the signed digest.

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

export interface VerifiedManifest {
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
  /** Called at the end of the archive. @throws WritError MANIFEST_MISMATCH, ARCHIVE_MALFORMED for a missing file or manifest */
  finish(): VerifiedManifest;
}

const plainMode = 0o644;
const executableFileMode = 0o755;

/**
 * Creates the visitor that verifies the entries of one archive and writes its files to `tree`. Throws nothing itself.
 * @returns a visitor for one archive. It writes no file before the manifest matches the signed digest; `finish` returns that
 *   manifest
 * @throws (its methods) WritError ENTRY_REFUSED for a forbidden path or mode; ARCHIVE_MALFORMED without a manifest as first
 *   entry; ARCHIVE_LIMIT; MANIFEST_DIGEST or MANIFEST_MALFORMED for a wrong manifest; MANIFEST_MISMATCH for an entry that
 *   differs from the manifest, is missing, or out of its order; DISK_*
 */
export function createBundleVisitor(options: BundleVisitorOptions): BundleVisitor {
  return new Visitor(options);
}

class Visitor implements BundleVisitor {
  readonly #options: BundleVisitorOptions;
  #manifest = Buffer.alloc(0);
  #manifestDone = 0;
  #proven: VerifiedManifest | undefined;
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
    // The parser of the manifest judged the paths in it. Only another path is judged here, for an exact error.
    const isNext = file !== undefined && entry.path.equals(Buffer.from(file.path));
    const path = isNext ? file.path : requirePath(entry.path, this.#options.limits);
    requireMode(path, entry.mode);
    requireManifestRow(file, entry, path);
    this.#next += 1;
    this.#options.tree.open(file);
  }

  data(chunk: Buffer): void {
    if (this.#proven !== undefined) this.#options.tree.write(chunk);
    // Copies the bytes, because the reader reuses its buffer after this call.
    else this.#manifestDone += chunk.copy(this.#manifest, this.#manifestDone);
  }

  end(): void {
    if (this.#proven !== undefined) this.#options.tree.close();
    else this.#endManifest();
  }

  #endManifest(): void {
    this.#proven = { bytes: this.#manifest, manifest: this.#proveManifest(this.#manifest) };
    this.#options.tree.requireSpace(this.#proven.manifest);
  }

  finish(): VerifiedManifest {
    if (this.#proven === undefined) throw createMissingManifestError('nothing');
    const missing = this.#proven.manifest.files[this.#next];
    if (missing !== undefined) throw createMismatch(`${missing.path} is missing`, { path: missing.path });
    return this.#proven;
  }

  #beginManifest({ path, sizeBytes, mode }: TarEntry): void {
    const { release, limits, archiveBytes } = this.#options;
    if (path.toString('latin1') !== manifestName) throw createMissingManifestError(requirePath(path, limits));
    requireMode(manifestName, mode);
    requireManifestLength(sizeBytes, archiveBytes, limits);
    if (sizeBytes !== release.manifest.length) {
      throw createManifestDigestError(release.manifest.length, sizeBytes);
    }
    this.#manifest = Buffer.alloc(sizeBytes);
  }

  #proveManifest(bytes: Buffer): Manifest {
    const { release, limits, archiveBytes } = this.#options;
    const digest = manifestDigest(bytes);
    // Before the parser, because unsigned bytes are never parsed.
    if (digest !== release.manifest.digest) throw createManifestDigestError(release.manifest.digest, digest);
    const manifest = parseManifest(bytes, limits);
    const unpackedBytes = manifest.files.reduce((total, file) => total + file.sizeBytes, bytes.length);
    // Each later entry must have its size in the manifest, so this sum bounds all unpacked bytes.
    requireRatio(unpackedBytes, archiveBytes, limits);
    return manifest;
  }
}

function requirePath(bytes: Buffer, limits: ArchiveLimits): string {
  const verdict = judgeEntryPath(bytes, limits);
  if (verdict.kind === 'accepted') return verdict.path;
  const shown = JSON.stringify(bytes.toString('utf8').slice(0, 200));
  throw new WritError('ENTRY_REFUSED', `the path ${shown} ${entryRules[verdict.rule]}`, {
    facts: { path: shown, rule: verdict.rule },
  });
}

/** Two modes are accepted. Another one is a set-uid bit, a world-writable file, or an archive of another program. */
function requireMode(path: string, mode: number): void {
  if (mode === plainMode || mode === executableFileMode) return;
  throw new WritError('ENTRY_REFUSED', `${path} has the mode ${mode.toString(8)}`, {
    facts: { path, expected: '644 or 755', actual: mode.toString(8) },
  });
}

function requireManifestRow(
  file: ManifestFile | undefined,
  { sizeBytes, mode }: TarEntry,
  path: string,
): asserts file is ManifestFile {
  if (file === undefined) throw createMismatch(`${path} is not in the manifest`, { path });
  if (file.path !== path) {
    throw createMismatch(`${path} is where the manifest has ${file.path}`, {
      path,
      expected: file.path,
      actual: path,
    });
  }
  if (file.sizeBytes !== sizeBytes) {
    throw createMismatch(`${path} has a different size`, {
      path,
      expected: file.sizeBytes,
      actual: sizeBytes,
    });
  }
  if (file.executable !== (mode === executableFileMode)) {
    throw createMismatch(`the executable bit of ${path} differs`, { path, actual: mode.toString(8) });
  }
}

function createMismatch(what: string, facts: Record<string, unknown>): WritError {
  return new WritError('MANIFEST_MISMATCH', `archive and manifest differ: ${what}`, { facts });
}

function createManifestDigestError(expected: string | number, actual: string | number): WritError {
  return new WritError('MANIFEST_DIGEST', 'the manifest in the archive is not the signed one', {
    facts: { expected, actual },
  });
}

function createMissingManifestError(actual: string): WritError {
  return new WritError('ARCHIVE_MALFORMED', 'the archive does not begin with its manifest', {
    facts: { expected: manifestName, actual },
  });
}
