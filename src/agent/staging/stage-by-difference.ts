// Makes a tree of a base and a verified delta, in the jail: what the delta carries by its instructions, everything else by a copy
// of the base's file. Each file is a new inode, digested against the signed manifest, which the delta's reader has proven
// before the first instruction. Nothing of the base is believed, and nothing is written there.
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
import { type BaseTree, mismatch, openBaseFile, readBase } from './base-files.js';
import { decompress } from './decompress.js';
import type { TreeWriter } from './stage-tree.js';
import { makeStagedBundle, type StagedBundle, type TreePlace } from './staged-bundle.js';
import type { ProvenManifest } from './verify-entries.js';

export interface DifferenceOptions extends TreePlace {
  readonly target: SignedTarget;
  readonly base: BaseTree;
  /** Its every byte is under the signed digest. */
  readonly delta: KeptFile;
  readonly copy: KeptCopy;
  readonly limits: ArchiveLimits;
}

/**
 * @throws WritError DELTA_MALFORMED; DELTA_MISMATCH where base and delta do not make what was signed; MANIFEST_MALFORMED,
 *   MANIFEST_MISMATCH for stamps that are not true; ARCHIVE_LIMIT; INTERRUPTED; DISK_*
 */
export function stageByDifference(options: DifferenceOptions): Promise<StagedBundle> {
  const { target, base, delta, limits, signal } = options;
  return makeStagedBundle({ ...options, fetchedBytes: delta.length }, async (tree) => {
    const maker = new TreeMaker({ base, tree, pace: unboundedPace(signal), target, limits });
    try {
      const { manifest } = target.release;
      const reader = createDeltaReader({ base, manifest, deltaBytes: delta.length, limits }, maker);
      const packed = { ...delta, target: `a delta of ${target.path}`, what: 'delta', signal } as const;
      await decompress(packed, async (chunk) => {
        reader.write(chunk);
        await maker.make();
      });
      reader.finish();
      return await maker.finish();
    } finally {
      maker.closeBase();
    }
  });
}

/** One thing to do, as it was told. */
type Task = () => Promise<void> | undefined | void;

interface Work {
  readonly base: BaseTree;
  readonly tree: TreeWriter;
  readonly pace: Pace;
  readonly target: SignedTarget;
  readonly limits: ArchiveLimits;
}

/** Bytes that are read of a base at a time. */
const pieceBytes = 262_144;
/** Of work, that a file costs beside its bytes: others run between two hundred small ones. */
const bytesOfAFile = 40_000;

/** Notes what the reader tells of one piece of the delta, and does it with pauses: a copy may be as long as its file. */
class TreeMaker implements DeltaVisitor {
  readonly #work: Work;
  readonly #buffer = Buffer.allocUnsafe(pieceBytes);
  #tasks: Task[] = [];
  #proven: ProvenManifest | undefined;
  readonly #carried = new Set<string>();
  /** What the file that is being made is copied from. */
  #from: OpenFile | undefined;
  #path = '';

  constructor(work: Work) {
    this.#work = work;
  }

  manifest(manifest: Manifest, bytes: Buffer): void {
    const { target, limits, tree } = this.#work;
    const total = manifest.files.reduce((sum, file) => sum + file.sizeBytes, bytes.length);
    // As for the archive, and in its bytes: what copies make says nothing of how long the delta is.
    requireRatio(total, target.length, limits);
    tree.requireRoom(manifest);
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

  /** Does what was told since the last time. */
  async make(): Promise<void> {
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) {
      const done = task();
      if (done !== undefined) await done;
    }
  }

  /** Called when all of the delta was read. */
  async finish(): Promise<ProvenManifest> {
    const { base } = this.#work;
    if (this.#proven === undefined) throw new WritError('INTERNAL', 'a delta ended without a manifest');
    const ofDigest = new Map(base.manifest.files.map((file) => [file.digest, file]));
    for (const file of this.#proven.manifest.files) {
      const from = ofDigest.get(file.digest);
      if (this.#carried.has(file.path) || from === undefined) continue;
      await this.#copyWhole(file, from);
    }
    return this.#proven;
  }

  /** For every way out. */
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
      readBase(this.#from, piece, offset + done);
      tree.write(piece);
      done += piece.length;
      await pace.spent(piece.length);
    }
  }

  #endFile(): Promise<void> {
    this.closeBase();
    proven(this.#path, () => this.#work.tree.close());
    return this.#work.pace.spent(bytesOfAFile);
  }

  async #copyWhole(file: ManifestFile, row: ManifestFile): Promise<void> {
    const { base, tree, pace } = this.#work;
    this.#from = openBaseFile(base.treePath, row);
    try {
      await tree.copy(file, this.#from, pace);
    } catch (error) {
      throw explained(file.path, error);
    }
    this.closeBase();
    await pace.spent(bytesOfAFile);
  }
}

function proven(path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw explained(path, error);
  }
}

/** The base was changed, or the delta is another one's: which, is for a look over the base to say. */
function explained(path: string, error: unknown): unknown {
  if (!isWritError(error)) return error;
  if (error.code === 'MANIFEST_MISMATCH') return mismatch(path, 'does not match what was signed', error);
  // The disk gave back what it never got, or did not: of the base as of the copy.
  if (error.code === 'DISK_FAILED') return mismatch(path, 'could not be copied', error);
  return error;
}
