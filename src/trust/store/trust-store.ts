// Where a host keeps the metadata it trusts: files byte for byte as received, and every root since the bootstrap
// root. Owns reading, healing and durable writing; what may be trusted is trusted-set's to say, and nothing
// comes here before it has been verified. Reading never writes: `writ status` looks in without the lock.
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
import { removeOldestFiles } from './delegated-files.js';
import type { TrustFloors } from './floor-rules.js';
import { requireReached, type StoredRoots, type StoredTrust, trustStoredRoot } from './root-history.js';
import { type FloorPlace, openTrustFloors } from './trust-floors.js';

export interface TrustStore {
  /**
   * Finds the trusted root: root.json, else rebuilt from the history, else the bootstrap root (first use).
   * @throws WritError ROOT_MISSING, ROOT_UNUSABLE, ROOT_NOT_LINKED, TRUST_STORE_DAMAGED
   */
  loadRoot(): TrustedSet;
  /** The other roles as stored; nothing is judged here. */
  loadFiles(): StoredFiles;
  /** Puts a verified root into the history, then makes it the trusted one; writes only what differs. */
  saveRoot(version: number, bytes: Uint8Array): void;
  /** Replaces the stored file of a role, if the bytes differ. */
  saveFile(role: 'timestamp' | 'snapshot' | 'targets', bytes: Uint8Array): void;
  /** Keeps the greatest time that the repository has signed, where the stored timestamp says less; else forgets it. */
  saveClockFloor(floorMs: number | undefined): void;
  /** A delegated role as stored; nothing is judged here. Those that no snapshot names any more are never asked for. */
  loadDelegated(name: string): Uint8Array | undefined;
  /**
   * As saveFile, for the file of a delegated role: under its encoded name, which is no other file's. Others make room
   * for it where all together are more than a host keeps.
   */
  saveDelegated(name: string, bytes: Uint8Array): void;
  /**
   * Asked after the chain has been followed: a bootstrap root newer than the trusted one is linked by now, and no
   * root that was accepted once is left behind.
   * @param rootVersion of the root that the chain has ended in
   * @throws WritError ROOT_NOT_LINKED, TRUST_STORE_DAMAGED
   */
  requireLinked(rootVersion: number): void;
  /** A root of the history as stored, for the name of a refusal; nothing is judged here. */
  loadEarlierRoot(version: number): Uint8Array | undefined;
  /** Versions that this boot has accepted, as of the start of the process or its last refresh; undefined where none are known. */
  floors(): TrustFloors | undefined;
  /** Keeps the versions that a refresh ended with. */
  saveFloors(refreshed: TrustedSet): void;
  /** True before the first refresh. */
  isEmpty(): boolean;
}

interface TrustStoreOptions {
  /** Absolute path of trust/; its parent exists. */
  readonly directory: string;
  /** The bootstrap root, shipped with the host. */
  readonly bootstrapRoot: string;
  readonly fs: DurableFs;
  /** Left out: no floors are kept beside the store. */
  readonly floors?: FloorPlace;
}

const maxStoredBytes = 16_000_000;
const rootName = new RegExp(`^(${versionPattern})\\.root\\.json$`);

/** Opens the store without touching the disk. */
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
  // No `.json`: every such file in here is metadata.
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
      // History first: a crash in between leaves a root too many there, never a root.json without its past.
      // What was lost while this process ran is written again: it is the link of the configured root to all that follow.
      if (anchor !== undefined && anchor.version < version) saveHistory(anchor.version, anchor.bytes);
      saveHistory(version, bytes);
      write('trust.root', pathOf('root'), bytes);
    },
    saveFile: (role, bytes) => write(`trust.${role}`, pathOf(role), bytes),
    loadDelegated: (name) => readStored(pathOf(roleFileName(name))),
    saveDelegated: (name, bytes) => {
      removeOldestFiles(fs, directory, `${roleFileName(name)}.json`, bytes.length);
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

/** A store that lives as long as the process: for a publisher's look at itself, and for `writ inspect`. */
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

/** What cannot be read is absent: the stored timestamp has a floor of its own. */
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

/** @returns what to do where the file is there, and this user may not read it; undefined where the hint of the code fits */
export function rootAccessHint(path: string, why: string): string | undefined {
  if (why !== 'EACCES' && why !== 'EPERM') return undefined;
  return `The user of this process may not read the file: \`chmod a+r ${path}\`, and \`chmod a+x\` for its directories. It contains public keys only.`;
}

function readBootstrap(path: string): Buffer {
  const verdict = readSmallFile(path, { maxBytes: maxStoredBytes });
  if (verdict.kind === 'read') return verdict.bytes;
  const { why } = verdict;
  throw new WritError('ROOT_MISSING', `the bootstrap root ${path} cannot be read: ${why}`, {
    facts: { path, why },
    ...given({ hint: rootAccessHint(path, why) }),
  });
}

/** @returns undefined if the file is absent, or larger than anything that was ever put here */
function readStored(path: string): Buffer | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxStoredBytes });
  if (verdict.kind === 'read') return verdict.bytes;
  if (verdict.kind === 'absent') {
    if (verdict.why === 'ENOTDIR') throw unexpectedEntry(dirname(path));
    return undefined;
  }
  if (verdict.because === 'too-long') return undefined;
  // Nothing can be renamed onto a directory.
  if (verdict.because === 'not-regular') throw unexpectedEntry(linkAt(path));
  throw diskError(verdict.cause, { op: 'trust.read', path });
}

/** Only the bootstrap root is judged without a way out: nobody sent it, so its mistakes are no attack and no server's. */
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

/** What no single file explains: the way out is to begin again at the bootstrap root, and costs a memory. */
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

/** @returns what a person does on purpose; undefined where the error names it itself */
function recoveryHint({ code, hint, facts }: WritError, places: TrustStoreOptions): string | undefined {
  const { directory, bootstrapRoot } = places;
  if (code === 'ROOT_NOT_LINKED' && hint === errorCodes.ROOT_NOT_LINKED.hint)
    return (
      `If ${bootstrapRoot} is wrong, replace it. If it is right, and you compared its digest with the publisher, begin ` +
      `again with it, which forgets the versions seen so far: \`mv ${directory} ${directory}.old\`, then \`writ pull\`.`
    );
  // With a path it is about one file; a missing link of the chain has its own hint.
  if (code !== 'TRUST_STORE_DAMAGED' || 'path' in facts || 'expected' in facts) return undefined;
  return (
    `Restore ${directory} from a backup; or begin again at the bootstrap root, which forgets the versions seen so ` +
    `far: \`mv ${directory} ${directory}.damaged\`, then \`writ pull\`.`
  );
}

/** @returns the place to move away, where links lead in a circle: the path, or its directory when that is the link */
function linkAt(path: string): string {
  try {
    lstatSync(path);
    return path;
  } catch {
    return linkAt(dirname(path));
  }
}

/** Writ never removes what it did not make. */
function unexpectedEntry(path: string): WritError {
  return new WritError('TRUST_STORE_DAMAGED', `${path} is not what Writ put there`, {
    facts: { path },
    hint: `Move it away (\`mv ${path} ${path}.away\`), then \`writ pull\`: it is fetched again.`,
  });
}

/** It is absent to whoever follows it, and in the way of whoever makes a directory there. */
function refuseDanglingLink(path: string): void {
  if (!existsSync(path) && lstatSync(path, { throwIfNoEntry: false })) throw unexpectedEntry(path);
}

function listVersions(directory: string): readonly number[] {
  try {
    const versions = readdirSync(directory).map((name) => Number(rootName.exec(name)?.[1] ?? Number.NaN));
    return versions.filter(Number.isSafeInteger).sort((a, b) => a - b);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) {
      // Not a history that was lost: its hint would have a person copy a file to where none can be made.
      for (const place of [dirname(directory), directory]) refuseDanglingLink(place);
      return [];
    }
    if (isSystemError(error, 'ENOTDIR') || isSystemError(error, 'ELOOP'))
      throw unexpectedEntry(linkAt(directory));
    throw diskError(error, { op: 'trust.read', path: directory });
  }
}
