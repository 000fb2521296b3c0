// Creates a repository and its keys: version 1 of root, targets, snapshot and timestamp. Runs once and never overwrites a
// file. The publisher keeps its own copy of the root in the key directory.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { parseEnvelope, type TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Clock } from '../../platform/time/clock.js';
import { isPathTaken, requireNoKeys } from '../keys/key-file.js';
import { requireApart } from '../keys/key-place.js';
import { makeParents, writeKeyPair } from '../keys/new-key.js';
import { publicPathOf } from '../keys/public-key.js';
import { type KeySigner, signMetadataNow } from '../keys/signer.js';
import { isSignerName } from '../keys/signer-names.js';
import {
  type Edition,
  rootContent,
  snapshotContent,
  targetsContent,
  timestampContent,
  type ValidityPeriods,
} from '../repository/metadata-content.js';
import { layoutOf, metadataName, type RepositoryLayout } from '../repository/repository-layout.js';
import { requireOwnRepository } from '../repository/repository-owner.js';
import { anchorName } from '../repository/repository-state.js';
import { createWriter } from '../repository/repository-writer.js';

export interface InitOptions {
  readonly repository: string;
  readonly keysDirectory: string;
  readonly rootKeys: number;
  readonly rootThreshold: number;
  /** Names of the root key owners, in the order of the keys; `root-N` for keys without a name. */
  readonly rootNames?: readonly string[];
  /**
   * `waived` allows a threshold equal to the number of keys, where the loss of one root key makes the repository unusable.
   */
  readonly spareRootKey: 'required' | 'waived';
  readonly validity: ValidityPeriods;
  /** Without it, the key files are not encrypted. */
  readonly passphrase?: string | undefined;
  readonly clock: Clock;
  readonly durableFs: DurableFs;
}

export type InitResult = ReturnType<typeof initRepository>;

/**
 * Creates a repository with its keys and the first version of each role. Removes all new files after a WritError.
 * @returns the roles with their number of keys, threshold, expiry, key files and key owners; and the path and digest of the
 *   first root
 * @throws WritError USAGE for the threshold or the names, REPOSITORY_EXISTS, REPOSITORY_OWNER if root runs it in a directory of
 *   another user, KEYS_IN_REPOSITORY for a key directory in the repository, KEY_EXISTS for a key file or a root in the key
 *   directory; SIGNATURE_DISAGREEMENT, DISK_*
 */
export function initRepository(options: InitOptions) {
  const { layout, plan } = planInit(options);
  const rootBytes = createAllOrNothing(options, layout, plan);
  return {
    roles: plan.roles.map(({ role, threshold, keys }) => ({
      role,
      keys: keys.length,
      threshold,
      expiresMs: options.clock.nowMs() + options.validity[role],
      keyFiles: keys.map(({ path }) => path),
      /** The names of the key owners, in the same order. */
      signers: keys.map(({ name }) => name),
    })),
    /** The path of the first root, which every host receives. */
    rootPath: join(layout.metadata, metadataName('root', 1)),
    /** The hex digest of the first root. People compare its first 16 digits by voice. */
    rootDigestHex: createHash('sha256').update(rootBytes).digest('hex'),
  };
}

/**
 * Runs all checks before a person types a passphrase twice. Writes nothing.
 * @returns the layout of the repository; and the plan: roles with their keys, and paths of all new files in the key directory
 * @throws WritError USAGE, REPOSITORY_EXISTS, REPOSITORY_OWNER, KEYS_IN_REPOSITORY, KEY_EXISTS
 */
export function planInit(options: InitOptions) {
  requireThresholdOf(options);
  requireNames(options);
  const layout = layoutOf(options.repository);
  if (fs.existsSync(layout.metadata)) {
    const facts = { path: options.repository };
    throw new WritError('REPOSITORY_EXISTS', `${options.repository} already contains a repository`, {
      facts,
    });
  }
  requireOwnRepository(options.repository);
  requireApart(options.repository, options.keysDirectory);
  const plan = planRoles(options);
  // An existing root counts too, because it may be the trusted root of another repository.
  requireNoKeys(plan.paths);
  return { layout, plan };
}

/**
 * Removes all new files after a failure, because a partial repository or keys without one would refuse the next attempt.
 * @returns the first root
 */
function createAllOrNothing(options: InitOptions, layout: RepositoryLayout, plan: InitPlan): Uint8Array {
  try {
    const holders = makeKeys(plan.roles, options);
    makeDirectories(layout, options.durableFs);
    return writeFirstVersions(layout, holders, options);
  } catch (error) {
    if (isWritError(error)) {
      const made = [...plan.paths, layout.metadata].filter(isPathTaken);
      for (const path of made) fs.rmSync(path, { recursive: true, force: true });
    }
    throw error;
  }
}

function requireThresholdOf({ rootKeys, rootThreshold, spareRootKey }: InitOptions): void {
  if (rootThreshold > rootKeys || rootThreshold < 1) {
    throw new WritError('USAGE', 'the root threshold must be from 1 to the number of root keys', {
      facts: { expected: rootKeys, actual: rootThreshold },
    });
  }
  if (rootThreshold < rootKeys || spareRootKey === 'waived') return;
  const message = `with ${rootThreshold} of ${rootKeys}, one lost root key makes the repository unusable`;
  throw new WritError('USAGE', message, {
    facts: { rootKeys, rootThreshold },
    hint: 'Create more root keys than the threshold, or give --yes.',
  });
}

function requireNames({ rootKeys, rootNames = [] }: InitOptions): void {
  const wrong = rootNames.find((name): boolean => !isSignerName(name));
  if (wrong !== undefined) {
    const message =
      'a name has up to 64 letters, digits, spaces and . _ @ - and begins with a letter or digit';
    throw new WritError('USAGE', message, { facts: { actual: wrong.slice(0, 100) } });
  }
  const all = Array.from({ length: rootKeys }, (_, index) => rootName(index, rootNames));
  if (new Set(all).size === all.length && rootNames.length <= rootKeys) return;
  throw new WritError('USAGE', 'each root key needs its own name', {
    facts: { expected: rootKeys, actual: rootNames.length },
  });
}

function rootName(index: number, names: readonly string[]): string {
  return names[index] ?? `root-${index + 1}`;
}

type InitPlan = ReturnType<typeof planRoles>;

/** @returns the roles, and the paths of all new files in the key directory: keys, public keys, the copy of the root */
function planRoles({ keysDirectory, rootKeys, rootThreshold, rootNames = [] }: InitOptions) {
  const key = (file: string, name: string) => ({ path: join(keysDirectory, `${file}.key`), name });
  const ofRoot = Array.from({ length: rootKeys }, (_, index) => {
    return key(`root-${index + 1}`, rootName(index, rootNames));
  });
  const roles = [
    { role: 'root', threshold: rootThreshold, keys: ofRoot },
    { role: 'targets', threshold: 1, keys: [key('targets', 'targets')] },
    { role: 'snapshot', threshold: 1, keys: [key('snapshot', 'server')] },
    { role: 'timestamp', threshold: 1, keys: [key('timestamp', 'server')] },
  ] as const;
  const keyPaths = roles.flatMap(({ keys }) => keys.flatMap(({ path }) => [path, publicPathOf(path)]));
  return { roles, paths: [...keyPaths, join(keysDirectory, anchorName)] };
}

type Holders = Parameters<typeof rootContent>[1] &
  Readonly<Record<TopLevelRole, { readonly keys: readonly KeySigner[] }>>;

function makeKeys(roles: InitPlan['roles'], options: InitOptions): Holders {
  const { keysDirectory, durableFs, passphrase } = options;
  makeParents(keysDirectory);
  durableFs.ensureDirectory('keys.directory', keysDirectory, 0o700);
  const holders = roles.map(({ role, threshold, keys }) => {
    const made = keys.map(({ path, name }) => {
      return { ...writeKeyPair({ path, name, durableFs, passphrase }), name };
    });
    return [role, { keys: made, threshold }] as const;
  });
  // Flush before the first signature: a repository is lost if a power cut takes its keys.
  durableFs.flushDirectory('keys.flush', keysDirectory);
  return Object.fromEntries(holders) as unknown as Holders;
}

function makeDirectories(layout: RepositoryLayout, durableFs: DurableFs): void {
  makeParents(layout.directory);
  durableFs.ensureDirectory('repo.directory', layout.directory, 0o755);
  durableFs.makeDirectory('repo.metadata-directory', layout.metadata, 0o755);
  durableFs.ensureDirectory('repo.targets-directory', layout.targets, 0o755);
  durableFs.flushDirectory('repo.directory:flush', layout.directory);
}

/** @returns the first root */
function writeFirstVersions(layout: RepositoryLayout, holders: Holders, options: InitOptions): Uint8Array {
  const { validity, durableFs, keysDirectory } = options;
  const writer = createWriter(layout, options);
  const nowMs = options.clock.nowMs();
  const edition = (role: TopLevelRole): Edition => ({ version: 1, nowMs, validityMs: validity[role] });
  const sign = (role: TopLevelRole, content: object): Buffer => {
    const bytes = signMetadataNow(content, holders[role].keys);
    // Do not write metadata that this program could not read.
    parseEnvelope(bytes, role);
    return bytes;
  };
  const root = sign('root', rootContent(edition('root'), holders, validity));
  const targets = sign('targets', targetsContent(edition('targets'), {}));
  const listed = new Map([['targets', { version: 1, bytes: targets }]]);
  const snapshot = sign('snapshot', snapshotContent(edition('snapshot'), { meta: {} }, listed));
  const named = { version: 1, bytes: snapshot };
  const timestamp = sign('timestamp', timestampContent(edition('timestamp'), named));
  durableFs.writeFile('keys.root', join(keysDirectory, anchorName), root, 0o644);
  writer.writeMetadata('root', 1, root);
  writer.writeMetadata('targets', 1, targets);
  writer.writeMetadata('snapshot', 1, snapshot);
  writer.publishTimestamp(timestamp);
  return root;
}
