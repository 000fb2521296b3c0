// Builds a staged tree from a base tree and a verified delta: files in the delta by its instructions, the others by a copy of the
// file of the base. Each file is a new inode and is verified against the signed manifest, which the delta reader verifies before
// the first instruction. Bytes of the base are not trusted, and the base is never written.
import { closeSync } from 'node:fs';
import { createDeltaReader, type DeltaVisitor } from '../../core/delta/delta-reader.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { requireRatio } from '../../core/release/archive-bounds.js';
import type { Manifest, ManifestFile } from '../../core/release/manifest.js';
import type { OpenFile } from '../../platform/disk/durable-fs.js';
import { type Pace, unboundedPace } from '../../platform/time/rate-limit.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { KeptCopy, KeptFile } from '../generations/kept-copies.js';
import { type BaseTree, createDeltaMismatch, openBaseFile, readBaseFile } from './base-files.js';
import { decompressFile } from './decompress.js';
import type { TreeWriter } from './stage-tree.js';
import { createStagedBundle, type StagedBundle, type StagedTreeOptions } from './staged-bundle.js';
import type { VerifiedManifest } from './verify-entries.js';

export interface StageDeltaOptions extends StagedTreeOptions {
  readonly target: SignedTarget;
  readonly base: BaseTree;
  /** A file that matches its signed digest. */
  readonly delta: KeptFile;
  readonly copy: KeptCopy;
  readonly limits: ArchiveLimits;
}

/**
 * Creates the staged tree of a release from its base tree and a verified delta. Never changes the base.
 * @returns the staged bundle in `directory`: every file has its signed digest. It is not flushed. After an error the tree is
 *   removed
 * @throws WritError DELTA_MALFORMED for a delta that cannot be decoded; DELTA_MISMATCH if a result has not its signed digest,
 *   also for a changed base; MANIFEST_MALFORMED; MANIFEST_MISMATCH for wrong stamps; ARCHIVE_LIMIT; INTERRUPTED; DISK_*
 */
export function stageDelta(options: StageDeltaOptions): Promise<StagedBundle> {
  const { target, base, delta, limits, signal } = options;
  return createStagedBundle({ ...options, fetchedBytes: delta.length }, async (tree) => {
    const builder = new DeltaTreeBuilder({ base, tree, pace: unboundedPace(signal), target, limits });
    try {
      const { manifest } = target.release;
      const reader = createDeltaReader({ base, manifest, deltaBytes: delta.length, limits }, builder);
      const packed = { ...delta, target: `a delta of ${target.path}`, what: 'delta', signal } as const;
      await decompressFile(packed, async (chunk) => {
        reader.write(chunk);
        await builder.runTasks();
      });
      reader.finish();
      return await builder.finish();
    } finally {
      builder.closeBase();
    }
  });
}

/** One instruction of the delta. */
type Task = () => Promise<void> | undefined | void;

interface DeltaContext {
  readonly base: BaseTree;
  readonly tree: TreeWriter;
  readonly pace: Pace;
  readonly target: SignedTarget;
  readonly limits: ArchiveLimits;
}

/** Bytes of one read of a base file. */
const pieceBytes = 262_144;
/** Work of a file in addition to its bytes, in bytes. It lets other tasks run after about two hundred small files. */
const workBytesPerFile = 40_000;

/** Queues the instructions of one piece of the delta and then runs them with pauses, because a copy can be as long as its file. */
class DeltaTreeBuilder implements DeltaVisitor {
  readonly #work: DeltaContext;
  readonly #buffer = Buffer.allocUnsafe(pieceBytes);
  #tasks: Task[] = [];
  #proven: VerifiedManifest | undefined;
  readonly #carried = new Set<string>();
  /** Base file of the current file. */
  #from: OpenFile | undefined;
  #path = '';

  constructor(work: DeltaContext) {
    this.#work = work;
  }

  manifest(manifest: Manifest, bytes: Buffer): void {
    const { target, limits, tree } = this.#work;
    const total = manifest.files.reduce((sum, file) => sum + file.sizeBytes, bytes.length);
    // Against the length of the archive, because the length of a delta does not bound what its copies make.
    requireRatio(total, target.length, limits);
    tree.requireSpace(manifest);
    this.#proven = { manifest, bytes };
  }

  open(file: ManifestFile, from: ManifestFile | undefined): void {
    this.#carried.add(file.path);
    this.#tasks.push(() => {
      this.#from = from && openBaseFile(this.#work.base.treePath, from);
      this.#path = file.path;
      this.#work.tree.open(file);
    });
  }

  literal(chunk: Buffer): void {
    const bytes = Buffer.from(chunk);
    this.#tasks.push(() => this.#work.tree.write(bytes));
  }

  copy(offset: number, length: number): void {
    this.#tasks.push(() => this.#copy(offset, length));
  }

  close(): void {
    this.#tasks.push(() => this.#endFile());
  }

  /** Runs the queued instructions. */
  async runTasks(): Promise<void> {
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) {
      const done = task();
      if (done !== undefined) await done;
    }
  }

  /** Called after the end of the delta: copies the files that the delta does not contain. */
  async finish(): Promise<VerifiedManifest> {
    const { base } = this.#work;
    if (this.#proven === undefined) throw new WritError('INTERNAL', 'a delta ended without a manifest');
    const baseFilesByDigest = new Map(base.manifest.files.map((file) => [file.digest, file]));
    for (const file of this.#proven.manifest.files) {
      const from = baseFilesByDigest.get(file.digest);
      if (this.#carried.has(file.path) || from === undefined) continue;
      await this.#copyWhole(file, from);
    }
    return this.#proven;
  }

  /** Called after success and after every error. */
  closeBase(): void {
    const from = this.#from;
    this.#from = undefined;
    if (from !== undefined) closeSync(from.descriptor);
  }

  async #copy(offset: number, length: number): Promise<void> {
    const { tree, pace } = this.#work;
    if (this.#from === undefined) throw new WritError('INTERNAL', 'a copy without a base');
    for (let done = 0; done < length; ) {
      const piece = this.#buffer.subarray(0, Math.min(pieceBytes, length - done));
      readBaseFile(this.#from, piece, offset + done);
      tree.write(piece);
      done += piece.length;
      await pace.spent(piece.length);
    }
  }

  #endFile(): Promise<void> {
    this.closeBase();
    convertErrors(this.#path, () => this.#work.tree.close());
    return this.#work.pace.spent(workBytesPerFile);
  }

  async #copyWhole(file: ManifestFile, row: ManifestFile): Promise<void> {
    const { base, tree, pace } = this.#work;
    this.#from = openBaseFile(base.treePath, row);
    try {
      await tree.copy(file, this.#from, pace);
    } catch (error) {
      throw toDeltaError(file.path, error);
    }
    this.closeBase();
    await pace.spent(workBytesPerFile);
  }
}

function convertErrors(path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw toDeltaError(path, error);
  }
}

/** A changed base and a wrong delta cause the same error; a scan of the base shows which. */
function toDeltaError(path: string, error: unknown): unknown {
  if (!isWritError(error)) return error;
  if (error.code === 'MANIFEST_MISMATCH')
    return createDeltaMismatch(path, 'does not match what was signed', error);
  // The disk failed to read the base or the copy.
  if (error.code === 'DISK_FAILED') return createDeltaMismatch(path, 'could not be copied', error);
  return error;
}
