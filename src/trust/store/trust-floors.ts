// The file of the trust floors in the run directory. It is read once in a process and written after each refresh. If it is damaged
// or cannot be written, the trust store alone decides.
import { createHash } from 'node:crypto';
import { isWritError } from '../../core/errors.js';
import type { TrustedSet } from '../../core/tuf/trusted-set.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { floorsOf, floorsText, parseFloors, type TrustFloors } from './floor-rules.js';

export interface FloorPlace {
  /** Absolute path, in a directory that a boot clears. */
  readonly path: string;
  readonly boot: string;
  /** Current state mark; undefined without one. */
  readonly mark: () => string | undefined;
  /** Called once with the path of a damaged file, which is ignored. */
  readonly onDamaged: (path: string) => void;
}

export interface FloorFile {
  /**
   * @param isStoreEmpty the trust store is empty: if the state mark is the same, a person moved it away, so that the floors are
   *   deleted
   */
  load(isStoreEmpty: boolean): void;
  /** Undefined before `load`, and if there are none. */
  known(): TrustFloors | undefined;
  /** Deletes the file if `load` found that the floors do not apply any more. Must be called before the trust store is written. */
  removeForgotten(): void;
  save(refreshed: TrustedSet): void;
}

/** Enough for all delegated roles that fit into a snapshot. */
const maxFloorBytes = 16_000_000;

/** @param bootstrapRoot called only after the bootstrap root was found to be readable */
export function openTrustFloors(
  { path, boot, mark, onDamaged }: FloorPlace,
  fs: DurableFs,
  bootstrapRoot: () => Uint8Array,
): FloorFile {
  let known: TrustFloors | undefined;
  let isForgotten = false;
  const owner = () => ({
    boot,
    bootstrap: createHash('sha256').update(bootstrapRoot()).digest('hex'),
  });
  return {
    load: (isStoreEmpty) => {
      const text = readText(path);
      const found = text === undefined ? 'foreign' : parseFloors(text, owner());
      if (found === 'damaged') onDamaged(path);
      if (typeof found === 'string') return;
      isForgotten = isStoreEmpty && found.mark === mark();
      known = isForgotten ? undefined : found.floors;
    },
    known: () => known,
    removeForgotten: () => {
      if (isForgotten) orIgnored(() => fs.discardFile('trust.floors-forget', path));
      isForgotten = false;
    },
    save: (refreshed) => {
      const [current, floors] = [mark(), floorsOf(refreshed)];
      if (current === undefined || floors === undefined) return;
      known = floors;
      const text = floorsText({ mark: current, floors }, owner());
      if (readText(path) === text) return;
      orIgnored(() => fs.replaceFile('trust.floors', path, text, { mode: 0o600 }));
    },
  };
}

/** @returns undefined for an absent file; '' for a file that cannot be read or is too long */
function readText(path: string): string | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxFloorBytes, links: 'refused' });
  if (verdict.kind === 'read') return verdict.bytes.toString('utf8');
  return verdict.kind === 'absent' ? undefined : '';
}

/**
 * Ignores disk errors: a full or read-only run directory must not prevent a refresh, because the trust store has the versions too.
 */
function orIgnored(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!isWritError(error) || !error.code.startsWith('DISK_')) throw error;
  }
}
