// One way to keep a small JSON document in the state directory: read with a bound, held to the digest that it ends with
// and to a JSON Schema, written whole through the durable layer and only when its bytes change. Owns no document's meaning:
// what takes the place of one that is damaged is its owner's to know.
import { isWritError, WritError } from '../../core/errors.js';
import { everyMistake, validatorOf } from '../../core/schema/own-schemas.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { refuseNewer } from './newer-format.js';
import { sealed, unsealed } from './sealed-json.js';
import { keepBroken } from './set-aside.js';

const maxStateBytes = 16_000_000;

export interface StateFile<T> {
  /** The document as last read or written; the first one while it is damaged. */
  read(): T;
  /**
   * Makes the next document durable before it returns; writes nothing when it is the same.
   * @throws WritError STATE_DAMAGED while the document is damaged, or gone: nothing may take its place by accident; DISK_*
   */
  write(next: T): void;
  /** What the file is: the error of one that is damaged, or was lost, until it is replaced. */
  found(): 'whole' | 'absent' | WritError;
  /**
   * Until it is disposed of, a write that the disk refuses is done once more behind `makeRoom`, and then stays in memory:
   * the next write makes all of it durable. For a way back, which never waits for a disk.
   */
  tolerate(makeRoom: () => boolean): Disposable;
  /** Why the document in memory is not on disk; undefined where it is. */
  unwritten(): WritError | undefined;
  /** Keeps a damaged file aside and puts this document in its place, in one rename. */
  replace(next: T): void;
}

export interface StateFileOptions<T> {
  readonly path: string;
  /** Label of the write, as `ledger`. */
  readonly op: string;
  /** A JSON Schema. */
  readonly schema: object;
  /** The document of a host that has none yet. */
  readonly initial: T;
  readonly durable: DurableFs;
  /** Puts a document of an older version into the form that the schema judges. */
  readonly renew?: (value: unknown) => unknown;
  /** Asked before a first write: false where a document that is absent has been lost, and its owner has to replace it. */
  readonly mayBegin?: () => boolean;
}

/**
 * Opens a document. One that is damaged is opened too, and says so: nothing is guessed, and nothing is written, before
 * its owner has replaced it.
 * @throws WritError STATE_TOO_NEW for the file of a later version, which nobody may replace; DISK_* when it cannot be read
 */
export function openStateFile<T>(options: StateFileOptions<T>): StateFile<T> {
  const { path, durable, op } = options;
  let { text, value = options.initial, damage }: Opened<T> = readDocument(options);
  const lost = (): WritError | undefined =>
    text === undefined && options.mayBegin?.() === false ? lostError(path) : undefined;
  let room: (() => boolean) | undefined;
  let unwritten: WritError | undefined;
  const save = (nextText: string): void => durable.writeFile(op, path, nextText, 0o600);
  const put = (next: T): void => {
    const nextText = sealed(next);
    try {
      if (nextText !== text) saveInRoom(save, nextText, room);
      text = nextText;
      unwritten = undefined;
    } catch (error) {
      if (room === undefined || !isOfDisk(error)) throw error;
      unwritten = error;
    }
    value = next;
  };
  return {
    read: () => value,
    write: (next) => {
      const wrong = damage ?? lost();
      if (wrong !== undefined) throw wrong;
      put(next);
    },
    found: () => damage ?? lost() ?? (text === undefined ? 'absent' : 'whole'),
    tolerate: (makeRoom) => {
      const before = room;
      room = makeRoom;
      return {
        [Symbol.dispose]: () => {
          room = before;
        },
      };
    },
    unwritten: () => unwritten,
    replace: (next) => {
      if (damage !== undefined) keepBroken(durable, path);
      put(next);
      damage = undefined;
    },
  };
}

/** @returns whether the disk refused, or the process has no descriptor left to ask it */
export function isOfDisk(error: unknown): error is WritError {
  return isWritError(error) && (error.code.startsWith('DISK_') || error.code === 'TOO_MANY_FILES');
}

/** @returns true where the disk, or what this user may have of it, was full: it passes once a person frees space */
export function isDiskFull(error: unknown): boolean {
  return isWritError(error) && (error.code === 'DISK_FULL' || error.code === 'DISK_QUOTA');
}

function saveInRoom(save: (text: string) => void, text: string, room: (() => boolean) | undefined): void {
  try {
    save(text);
  } catch (error) {
    if (!isOfDisk(error) || room?.() !== true) throw error;
    save(text);
  }
}

function lostError(path: string): WritError {
  const hint = 'Start the agent, or run `writ pull`: it is rebuilt from the other files on disk.';
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
    value = (options.renew ?? ((read) => read))(unsealed(text));
  } catch (error) {
    throw damaged(error instanceof SyntaxError ? 'not JSON' : 'its content was changed', error);
  }
  refuseNewer(options.path, value);
  if (validatorOf(options.schema)(value)) return value as T;
  const [first] = everyMistake(options.schema, value);
  throw damaged(`${first?.instancePath || '/'} ${first?.message ?? 'is wrong'}`);
}
