// The file of the trust floors in the run directory. Reads it once for a process, and writes it after a refresh. A copy that is
// damaged, or cannot be written, changes nothing: the trust store decides as without it.
import { createHash } from 'node:crypto';
import { isWritError } from '../../core/errors.js';
import type { TrustedSet } from '../../core/tuf/trusted-set.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { floorsOf, floorsText, parseFloors, type TrustFloors } from './floor-rules.js';

export interface FloorPlace {
  /** Absolute, in a directory that ends with the boot. */
  readonly path: string;
  readonly boot: string;
  /** The mark of the state directory now; undefined where it has none. */
  readonly mark: () => string | undefined;
  /** Called once for a copy that is ignored, with its path. */
  readonly onDamaged: (path: string) => void;
}

export interface FloorFile {
  /** @param isStoreEmpty the trust store has nothing: with the same mark a person moved it away, which forgets the floors */
  load(isStoreEmpty: boolean): void;
  /** Undefined before `load`, and where there are none. */
  known(): TrustFloors | undefined;
  /** Removes floors that are forgotten: called before the trust store is written. */
  removeForgotten(): void;
  save(refreshed: TrustedSet): void;
}

/** A snapshot lists as many delegated roles as fit into it. */
const maxFloorBytes = 16_000_000;

/** @param bootstrapRoot called after the bootstrap root was found to be readable */
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

/** @returns undefined where nothing can be read; no text for what is no small file */
function readText(path: string): string | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxFloorBytes, links: 'refused' });
  if (verdict.kind === 'read') return verdict.bytes.toString('utf8');
  return verdict.kind === 'absent' ? undefined : '';
}

/** The floors are a second memory: a full or read-only run directory keeps no refresh from its end. */
function orIgnored(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!isWritError(error) || !error.code.startsWith('DISK_')) throw error;
  }
}
