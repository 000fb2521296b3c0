// Reads and writes a small JSON document of the state directory. Bounds its size, verifies its digest, and validates it with a
// JSON Schema. Writes the complete document durably, and only when its bytes change. The owner of a document decides what
// replaces a damaged one.
import { isWritError, WritError } from '../../core/errors.js';
import { everyMistake, validatorOf } from '../../core/schema/own-schemas.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { requireKnownFormat } from './known-format.js';
import { sealed, unsealed } from './sealed-json.js';
import { setAside } from './set-aside.js';

const maxStateBytes = 16_000_000;

export interface StateFile<T> {
  /** @returns the document as last read or written; the initial document while the file is damaged */
  read(): T;
  /**
   * Makes the next document durable before it returns. Does nothing if the bytes are the same.
   * @throws WritError STATE_DAMAGED while the file is damaged or missing, because only `replace` may overwrite it; DISK_*
   */
  write(next: T): void;
  /** @returns STATE_DAMAGED while the file is damaged, or missing although it existed before; else whether it exists */
  condition(): 'intact' | 'absent' | WritError;
  /**
   * Until the result is disposed of, a write that fails with a disk error is retried after `freeSpace` returned true. If it
   * fails again, the document stays in memory, and the next write makes it durable. A restore uses it, because a restore
   * never waits for a disk.
   */
  tolerateDiskErrors(freeSpace: () => boolean): Disposable;
  /** @returns why the document in memory is not on the disk; undefined if it is */
  writeError(): WritError | undefined;
  /** Sets a damaged file aside and replaces it by this document in one rename. */
  replace(next: T): void;
}

export interface StateFileOptions<T> {
  readonly path: string;
  /** Label of the write operation, as `ledger`. */
  readonly op: string;
  /** The JSON Schema of the document. */
  readonly schema: object;
  /** The document of a host that has no file yet. */
  readonly initial: T;
  readonly durable: DurableFs;
  /** Converts a document of an older version, before the validation. */
  readonly migrate?: (value: unknown) => unknown;
  /** Whether a missing file may be created; false: the file was lost, and only `replace` creates it again. */
  readonly mayCreate?: () => boolean;
}

/**
 * Opens a document. Opens also a damaged file: `condition` returns the error, and no write succeeds before its owner has
 * replaced it.
 * @throws WritError STATE_TOO_NEW for a file of a later version, which must not be replaced; DISK_* if it cannot be read
 */
export function openStateFile<T>(options: StateFileOptions<T>): StateFile<T> {
  const { path, durable, op } = options;
  let { text, value = options.initial, damage }: Opened<T> = readDocument(options);
  const missing = (): WritError | undefined =>
    text === undefined && options.mayCreate?.() === false ? missingError(path) : undefined;
  let freeSpace: (() => boolean) | undefined;
  let lastWriteError: WritError | undefined;
  const save = (nextText: string): void => durable.writeFile(op, path, nextText, 0o600);
  const saveAndKeep = (next: T): void => {
    const nextText = sealed(next);
    try {
      if (nextText !== text) saveWithFreedSpace(save, nextText, freeSpace);
      text = nextText;
      lastWriteError = undefined;
    } catch (error) {
      if (freeSpace === undefined || !isDiskError(error)) throw error;
      lastWriteError = error;
    }
    value = next;
  };
  return {
    read: () => value,
    write: (next) => {
      const wrong = damage ?? missing();
      if (wrong !== undefined) throw wrong;
      saveAndKeep(next);
    },
    condition: () => damage ?? missing() ?? (text === undefined ? 'absent' : 'intact'),
    tolerateDiskErrors: (nextFreeSpace) => {
      const before = freeSpace;
      freeSpace = nextFreeSpace;
      return {
        [Symbol.dispose]: () => {
          freeSpace = before;
        },
      };
    },
    writeError: () => lastWriteError,
    replace: (next) => {
      if (damage !== undefined) setAside(durable, path);
      saveAndKeep(next);
      damage = undefined;
    },
  };
}

/** @returns whether the error is of the disk, or the process has no file descriptor left */
export function isDiskError(error: unknown): error is WritError {
  return isWritError(error) && (error.code.startsWith('DISK_') || error.code === 'TOO_MANY_FILES');
}

/** @returns whether the disk or the quota of this user is full: it ends once an operator frees space */
export function isDiskFull(error: unknown): boolean {
  return isWritError(error) && (error.code === 'DISK_FULL' || error.code === 'DISK_QUOTA');
}

function saveWithFreedSpace(
  save: (text: string) => void,
  text: string,
  freeSpace: (() => boolean) | undefined,
): void {
  try {
    save(text);
  } catch (error) {
    if (!isDiskError(error) || freeSpace?.() !== true) throw error;
    save(text);
  }
}

function missingError(path: string): WritError {
  const hint = 'Start the agent, or run `writ pull`: the file is rebuilt from the other files on disk.';
  return new WritError('STATE_DAMAGED', `${path} is gone`, { facts: { path }, hint });
}

interface Opened<T> {
  readonly text?: string | undefined;
  readonly value?: T;
  damage?: WritError;
}

function readDocument<T>(options: StateFileOptions<T>): Opened<T> {
  try {
    const text = readBounded(options.path, options.op);
    return text === undefined ? {} : { text, value: parse<T>(text, options) };
  } catch (error) {
    if (isWritError(error) && error.code === 'STATE_DAMAGED') return { damage: error };
    throw error;
  }
}

function readBounded(path: string, op: string): string | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxStateBytes });
  if (verdict.kind === 'read') return verdict.bytes.toString('utf8');
  if (verdict.kind === 'absent') return undefined;
  const { because, why, cause } = verdict;
  if (because === 'system') throw diskError(cause, { op: `${op}:read`, path });
  throw new WritError('STATE_DAMAGED', `${path}: ${why}`, { facts: { path } });
}

function parse<T>(text: string, options: StateFileOptions<T>): T {
  const damaged = (why: string, cause?: unknown): WritError =>
    new WritError('STATE_DAMAGED', `${options.path}: ${why}`, { facts: { path: options.path }, cause });
  let value: unknown;
  try {
    value = (options.migrate ?? ((read) => read))(unsealed(text));
  } catch (error) {
    throw damaged(error instanceof SyntaxError ? 'not JSON' : 'its content was changed', error);
  }
  requireKnownFormat(options.path, value);
  if (validatorOf(options.schema)(value)) return value as T;
  const [first] = everyMistake(options.schema, value);
  throw damaged(`${first?.instancePath || '/'} ${first?.message ?? 'is wrong'}`);
}
