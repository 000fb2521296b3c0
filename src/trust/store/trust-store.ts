// The trust store of a host: the exact bytes of the trusted metadata, and each root since the bootstrap root. Reads, rebuilds and
// writes the files; the caller verifies a file before it is stored. Reading never writes, so that `writ status` reads without the
// lock.
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCodes } from '../../core/error-codes.js';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { roleFileName } from '../../core/tuf/delegations.js';
import { type StoredFiles, type TrustedSet, trustFirstRoot } from '../../core/tuf/trusted-set.js';
import { versionPattern } from '../../core/tuf/tuf-metadata.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { makeSpaceForDelegated } from './delegated-files.js';
import type { TrustFloors } from './floor-rules.js';
import { requireReached, type StoredRoots, type StoredTrust, trustStoredRoot } from './root-history.js';
import { type FloorPlace, openTrustFloors } from './trust-floors.js';

export interface TrustStore {
  /**
   * Returns the trusted root: root.json, else rebuilt from the history, else the bootstrap root at the first use.
   * @throws WritError ROOT_MISSING, ROOT_UNUSABLE, ROOT_NOT_LINKED, TRUST_STORE_DAMAGED
   */
  loadRoot(): TrustedSet;
  /** Returns the stored files of the other roles, unverified. */
  loadFiles(): StoredFiles;
  /** Adds a verified root to the history, then makes it the trusted one. Writes only files that differ. */
  saveRoot(version: number, bytes: Uint8Array): void;
  /** Replaces the stored file of a role if the bytes differ. */
  saveFile(role: 'timestamp' | 'snapshot' | 'targets', bytes: Uint8Array): void;
  /** Stores the clock floor if it is above the time in the stored timestamp; undefined deletes it. */
  saveClockFloor(floorMs: number | undefined): void;
  /** Returns the stored file of a delegated role, unverified. Roles that no snapshot lists any more are never requested. */
  loadDelegated(name: string): Uint8Array | undefined;
  /**
   * As saveFile, for a delegated role. The encoded name of the role is a unique file name. Removes older files of delegated roles if
   * all together exceed their bound.
   */
  saveDelegated(name: string, bytes: Uint8Array): void;
  /**
   * Called after the chain was followed: it must link a bootstrap root that is newer than the stored one, and reach each root that
   * was accepted before.
   * @param rootVersion version of the last root of the chain
   * @throws WritError ROOT_NOT_LINKED, TRUST_STORE_DAMAGED
   */
  requireLinked(rootVersion: number): void;
  /** Returns a stored root of the history, unverified, to choose the code of a refusal. */
  loadEarlierRoot(version: number): Uint8Array | undefined;
  /** The versions that this boot has accepted, as of the start of the process or its last refresh; undefined if not known. */
  floors(): TrustFloors | undefined;
  /** Stores the versions at the end of a refresh. */
  saveFloors(refreshed: TrustedSet): void;
  /** True before the first refresh. */
  isEmpty(): boolean;
}

interface TrustStoreOptions {
  /** Absolute path of trust/; its parent exists. */
  readonly directory: string;
  /** Path of the bootstrap root, which is installed with the host. */
  readonly bootstrapRoot: string;
  readonly fs: DurableFs;
  /** Undefined: no trust floors are stored. */
  readonly floors?: FloorPlace;
}

const maxStoredBytes = 16_000_000;
const rootName = new RegExp(`^(${versionPattern})\\.root\\.json$`);

/** Opens the store without access to the disk. */
export function openTrustStore(options: TrustStoreOptions): TrustStore {
  const { directory, fs } = options;
  const history = join(directory, 'roots');
  const pathOf = (role: string): string => join(directory, `${role}.json`);
  const write = (op: string, path: string, bytes: Uint8Array): void => {
    if (readStored(path)?.equals(bytes)) return;
    for (const [step, place] of Object.entries({ 'trust.directory': directory, 'trust.roots': history })) {
      refuseDanglingLink(place);
      fs.ensureDirectory(step, place, 0o700);
    }
    fs.writeFile(op, path, bytes, 0o600);
  };
  const readRoot = (version: number): Buffer | undefined => readStored(join(history, `${version}.root.json`));
  const readRoots = (): StoredRoots => ({
    bootstrap: readBootstrap(options.bootstrapRoot),
    current: readStored(pathOf('root')),
    versions: listVersions(history),
    read: readRoot,
  });
  // Without `.json`, because each such file in this directory is metadata.
  const floorPath = join(directory, 'clock-floor');
  let link: StoredTrust['link'] = 'linked';
  let anchor: StoredTrust['anchor'];
  const saveHistory = (version: number, bytes: Uint8Array): void =>
    write('trust.root-history', join(history, `${version}.root.json`), bytes);
  const isEmpty = (): boolean =>
    readStored(pathOf('root')) === undefined && listVersions(history).length === 0;
  const floors =
    options.floors && openTrustFloors(options.floors, fs, () => readBootstrap(options.bootstrapRoot));

  return {
    loadRoot: () => {
      const stored = withRecoveryHint(options, () =>
        asRootError(options.bootstrapRoot, () => trustStoredRoot(readRoots())),
      );
      ({ link, anchor } = stored);
      floors?.load(isEmpty());
      return stored.set;
    },
    loadFiles: () => ({
      ...readFiles((role) => readStored(pathOf(role))),
      ...parseFloor(readStored(floorPath)),
    }),
    saveClockFloor: (floorMs) => {
      if (floorMs !== undefined) write('trust.clock-floor', floorPath, Buffer.from(`${floorMs}\n`));
      else if (readStored(floorPath) !== undefined) fs.removeFile('trust.clock-floor', floorPath);
    },
    floors: () => floors?.known(),
    saveFloors: (refreshed) => floors?.save(refreshed),
    saveRoot: (version, bytes) => {
      floors?.removeForgotten();
      // The history first: after a crash in between, it has one root too many, and never lacks a root before root.json. A bootstrap
      // root that was lost while this process ran is written again, because it links the configured root to all later ones.
      if (anchor !== undefined && anchor.version < version) saveHistory(anchor.version, anchor.bytes);
      saveHistory(version, bytes);
      write('trust.root', pathOf('root'), bytes);
    },
    saveFile: (role, bytes) => write(`trust.${role}`, pathOf(role), bytes),
    loadDelegated: (name) => readStored(pathOf(roleFileName(name))),
    saveDelegated: (name, bytes) => {
      makeSpaceForDelegated(fs, directory, `${roleFileName(name)}.json`, bytes.length);
      write('trust.delegated', pathOf(roleFileName(name)), bytes);
    },
    requireLinked: (rootVersion) => {
      if (link === 'open') withRecoveryHint(options, () => requireReached(readRoots(), rootVersion));
      link = 'linked';
    },
    loadEarlierRoot: readRoot,
    isEmpty,
  };
}

/** A store in memory, with which a publisher verifies its own repository, and for `writ inspect`. */
export function memoryTrustStore(bootstrapRoot: Uint8Array): TrustStore {
  const files = new Map<string, Buffer>();
  const delegated = new Map<string, Buffer>();
  const bootstrap = Buffer.from(bootstrapRoot);
  return {
    loadRoot: () => trustFirstRoot(files.get('root') ?? bootstrap),
    loadFiles: () => readFiles((role) => files.get(role)),
    saveRoot: (_version, bytes) => void files.set('root', Buffer.from(bytes)),
    saveFile: (role, bytes) => void files.set(role, Buffer.from(bytes)),
    saveClockFloor: () => undefined,
    loadDelegated: (name) => delegated.get(name),
    saveDelegated: (name, bytes) => void delegated.set(name, Buffer.from(bytes)),
    requireLinked: () => undefined,
    loadEarlierRoot: () => undefined,
    floors: () => undefined,
    saveFloors: () => undefined,
    isEmpty: () => !files.has('root'),
  };
}

/** An invalid file counts as absent, because the stored timestamp contains a floor too. */
function parseFloor(bytes: Buffer | undefined): { clockFloorMs?: number } {
  const digits = /^([0-9]{1,15})\n$/.exec(bytes?.subarray(0, 20).toString('latin1') ?? '')?.[1];
  return digits === undefined ? {} : { clockFloorMs: Number(digits) };
}

function readFiles(read: (role: string) => Buffer | undefined): StoredFiles {
  const stored = (['timestamp', 'snapshot', 'targets'] as const).flatMap((role) => {
    const bytes = read(role);
    return bytes === undefined ? [] : [[role, bytes] as const];
  });
  return Object.fromEntries(stored);
}

/**
 * @param errno code of the system, as EACCES
 * @returns the chmod that makes the file of the trusted root readable, for EACCES and EPERM; undefined: the hint of the code
 *   applies
 */
export function rootFileAccessHint(path: string, errno: string): string | undefined {
  if (errno !== 'EACCES' && errno !== 'EPERM') return undefined;
  return `The user of this process may not read the file: \`chmod a+r ${path}\`, and \`chmod a+x\` for its directories. It contains public keys only.`;
}

function readBootstrap(path: string): Buffer {
  const verdict = readSmallFile(path, { maxBytes: maxStoredBytes });
  if (verdict.kind === 'read') return verdict.bytes;
  const { why } = verdict;
  throw new WritError('ROOT_MISSING', `the bootstrap root ${path} cannot be read: ${why}`, {
    facts: { path, why },
    ...given({ hint: rootFileAccessHint(path, why) }),
  });
}

/** @returns undefined if the file is absent, or larger than any file that Writ stores */
function readStored(path: string): Buffer | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxStoredBytes });
  if (verdict.kind === 'read') return verdict.bytes;
  if (verdict.kind === 'absent') {
    if (verdict.why === 'ENOTDIR') throw unexpectedEntry(dirname(path));
    return undefined;
  }
  if (verdict.because === 'too-long') return undefined;
  // A file cannot be renamed onto a directory.
  if (verdict.because === 'not-regular') throw unexpectedEntry(linkAt(path));
  throw diskError(verdict.cause, { op: 'trust.read', path });
}

/**
 * Changes an error of the bootstrap root to ROOT_UNUSABLE, because that file comes from the configuration: its error is neither an
 * attack nor a fault of the server.
 */
function asRootError<T>(path: string, judge: () => T): T {
  try {
    return judge();
  } catch (error) {
    if (!isWritError(error) || !/^(METADATA|SIGNATURE)_/.test(error.code)) throw error;
    throw new WritError('ROOT_UNUSABLE', `the bootstrap root ${path} cannot be used: ${error.message}`, {
      facts: { path, reason: error.code },
      cause: error,
    });
  }
}

/**
 * Adds a hint to an error that concerns the whole store: to start again with the bootstrap root, which deletes the known versions.
 */
function withRecoveryHint<T>(options: TrustStoreOptions, judge: () => T): T {
  try {
    return judge();
  } catch (error) {
    const hint = isWritError(error) ? recoveryHint(error, options) : undefined;
    if (!isWritError(error) || hint === undefined) throw error;
    const facts = { ...error.facts, path: options.directory };
    throw new WritError(error.code, error.message, { facts, hint, cause: error });
  }
}

/** @returns the hint; undefined if the error has a specific one */
function recoveryHint({ code, hint, facts }: WritError, places: TrustStoreOptions): string | undefined {
  const { directory, bootstrapRoot } = places;
  if (code === 'ROOT_NOT_LINKED' && hint === errorCodes.ROOT_NOT_LINKED.hint)
    return (
      `If ${bootstrapRoot} is wrong, replace it. If it is right, and you compared its digest with the publisher, begin ` +
      `again with it, which forgets the versions seen so far: \`mv ${directory} ${directory}.old\`, then \`writ pull\`.`
    );
  // An error with a path concerns one file; one about a missing link of the chain has its own hint.
  if (code !== 'TRUST_STORE_DAMAGED' || 'path' in facts || 'expected' in facts) return undefined;
  return (
    `Restore ${directory} from a backup; or begin again at the bootstrap root, which forgets the versions seen so ` +
    `far: \`mv ${directory} ${directory}.damaged\`, then \`writ pull\`.`
  );
}

/** @returns the link in a circle of links, which must be moved away: the path or one of its parent directories */
function linkAt(path: string): string {
  try {
    lstatSync(path);
    return path;
  } catch {
    return linkAt(dirname(path));
  }
}

/** An error and no removal, because Writ never removes an entry that it did not create. */
function unexpectedEntry(path: string): WritError {
  return new WritError('TRUST_STORE_DAMAGED', `${path} is not what Writ put there`, {
    facts: { path },
    hint: `Move it away (\`mv ${path} ${path}.away\`), then \`writ pull\`: it is fetched again.`,
  });
}

/** A dangling link appears absent to a reader, and prevents the creation of a directory. */
function refuseDanglingLink(path: string): void {
  if (!existsSync(path) && lstatSync(path, { throwIfNoEntry: false })) throw unexpectedEntry(path);
}

function listVersions(directory: string): readonly number[] {
  try {
    const versions = readdirSync(directory).map((name) => Number(rootName.exec(name)?.[1] ?? Number.NaN));
    return versions.filter(Number.isSafeInteger).sort((a, b) => a - b);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) {
      // A dangling link is not a lost history. The hint for that would ask a person to copy a file to a path that cannot be created.
      for (const place of [dirname(directory), directory]) refuseDanglingLink(place);
      return [];
    }
    if (isSystemError(error, 'ENOTDIR') || isSystemError(error, 'ELOOP'))
      throw unexpectedEntry(linkAt(directory));
    throw diskError(error, { op: 'trust.read', path: directory });
  }
}
