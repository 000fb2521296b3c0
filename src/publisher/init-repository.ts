// Makes a repository and the keys to it: root, targets, snapshot, timestamp, each version 1. Runs once; what is
// there already is never overwritten. The publisher keeps its own copy of the root beside the keys.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { WritError } from '../core/errors.js';
import { parseEnvelope, type TopLevelRole } from '../core/tuf-metadata.js';
import type { Clock } from '../platform/clock.js';
import type { DurableFs } from '../platform/durable-fs.js';
import { createKeyFile, newSeed, requireNoKeys } from './key-file.js';
import {
  type Edition,
  type RoleLives,
  rootContent,
  snapshotContent,
  targetsContent,
  timestampContent,
} from './metadata-content.js';
import { layoutOf, metadataName, type RepositoryLayout } from './repository-layout.js';
import { anchorName } from './repository-state.js';
import { createWriter } from './repository-writer.js';
import { createSigner, type KeySigner, signMetadataNow } from './signer.js';

export interface InitOptions {
  readonly repository: string;
  readonly keysDirectory: string;
  readonly rootKeys: number;
  readonly rootThreshold: number;
  /** One lost root key would then be the end of the repository: must be said on purpose. */
  readonly spareRootKey: 'required' | 'waived';
  readonly lives: RoleLives;
  /** Absent: the key files are not encrypted. */
  readonly passphrase?: string;
  readonly clock: Clock;
  readonly durableFs: DurableFs;
}

export interface InitResult {
  readonly roles: readonly InitRole[];
  /** Path of the first root, which every host is given. */
  readonly rootPath: string;
  /** SHA-256 of the first root in hex; its first 16 digits are compared by voice. */
  readonly rootDigestHex: string;
}

export interface InitRole {
  readonly role: TopLevelRole;
  readonly keys: number;
  readonly threshold: number;
  readonly expiresMs: number;
  readonly keyFiles: readonly string[];
}

/** @throws WritError USAGE, REPOSITORY_EXISTS, KEY_EXISTS, SIGNATURE_DISAGREEMENT, DISK_* */
export function initRepository(options: InitOptions): InitResult {
  requireThresholdOf(options);
  const layout = layoutOf(options.repository);
  if (fs.existsSync(layout.metadata)) {
    const facts = { path: options.repository };
    throw new WritError('REPOSITORY_EXISTS', `${options.repository} holds a repository`, { facts });
  }
  const roles = rolesOf(options);
  requireNoKeys(roles.flatMap(({ paths }) => paths));
  const holders = makeKeys(roles, options);
  makeDirectories(layout, options.durableFs);
  const rootBytes = writeFirstVersions(layout, holders, options);
  return {
    roles: roles.map(({ role, threshold, paths }) => {
      const expiresMs = options.clock.nowMs() + options.lives[role];
      return { role, keys: paths.length, threshold, expiresMs, keyFiles: paths };
    }),
    rootPath: join(layout.metadata, metadataName('root', 1)),
    rootDigestHex: createHash('sha256').update(rootBytes).digest('hex'),
  };
}

function requireThresholdOf({ rootKeys, rootThreshold, spareRootKey }: InitOptions): void {
  if (rootThreshold > rootKeys || rootThreshold < 1) {
    throw new WritError('USAGE', 'the root threshold must be from 1 to the number of root keys', {
      facts: { expected: rootKeys, actual: rootThreshold },
    });
  }
  if (rootThreshold < rootKeys || spareRootKey === 'waived') return;
  throw new WritError(
    'USAGE',
    `with ${rootThreshold} of ${rootKeys}, one lost root key ends the repository`,
    {
      facts: { rootKeys, rootThreshold },
      hint: 'Make more root keys than the threshold, or say --yes.',
    },
  );
}

interface RolePlan {
  readonly role: TopLevelRole;
  readonly threshold: number;
  readonly paths: readonly string[];
}

function rolesOf({ keysDirectory, rootKeys, rootThreshold }: InitOptions): readonly RolePlan[] {
  const rootPaths = Array.from({ length: rootKeys }, (_, index) =>
    join(keysDirectory, `root-${index + 1}.key`),
  );
  const others = (['targets', 'snapshot', 'timestamp'] as const).map((role) => {
    return { role, threshold: 1, paths: [join(keysDirectory, `${role}.key`)] };
  });
  return [{ role: 'root', threshold: rootThreshold, paths: rootPaths }, ...others];
}

interface Holder {
  readonly signers: readonly KeySigner[];
  readonly threshold: number;
}

type Holders = Readonly<Record<TopLevelRole, Holder>>;

function makeKeys(roles: readonly RolePlan[], options: InitOptions): Holders {
  const { keysDirectory, durableFs, passphrase } = options;
  fs.mkdirSync(dirname(keysDirectory), { recursive: true });
  durableFs.ensureDirectory('keys.directory', keysDirectory, 0o700);
  const holders = roles.map(({ role, threshold, paths }) => {
    const signers = paths.map((path) => {
      const seed = newSeed();
      createKeyFile({ path, seed, durableFs, ...(passphrase === undefined ? {} : { passphrase }) });
      return createSigner(seed);
    });
    return [role, { signers, threshold }] as const;
  });
  // Before anything is signed with them: a repository whose keys a power cut took is lost.
  durableFs.flushDirectory('keys.flush', keysDirectory);
  return Object.fromEntries(holders) as unknown as Holders;
}

function makeDirectories(layout: RepositoryLayout, durableFs: DurableFs): void {
  fs.mkdirSync(dirname(layout.directory), { recursive: true });
  durableFs.ensureDirectory('repo.directory', layout.directory, 0o755);
  durableFs.makeDirectory('repo.metadata-directory', layout.metadata, 0o755);
  durableFs.ensureDirectory('repo.targets-directory', layout.targets, 0o755);
  durableFs.flushDirectory('repo.directory:flush', layout.directory);
}

/** @returns the first root */
function writeFirstVersions(layout: RepositoryLayout, holders: Holders, options: InitOptions): Uint8Array {
  const { clock, lives, durableFs, keysDirectory } = options;
  const writer = createWriter(layout, options);
  const nowMs = clock.nowMs();
  const edition = (role: TopLevelRole): Edition => ({ version: 1, nowMs, lifeMs: lives[role] });
  const sign = (role: TopLevelRole, content: object): Buffer => {
    const bytes = signMetadataNow(content, holders[role].signers);
    // What we could not read ourselves must not be written.
    parseEnvelope(bytes, role);
    return bytes;
  };
  const keysOf = (role: TopLevelRole) => {
    const { signers, threshold } = holders[role];
    return { keys: signers.map((signer) => signer.key), threshold };
  };
  const rootHolders = {
    root: keysOf('root'),
    targets: keysOf('targets'),
    snapshot: keysOf('snapshot'),
    timestamp: keysOf('timestamp'),
  };
  const root = sign('root', rootContent(edition('root'), rootHolders, lives));
  const targets = sign('targets', targetsContent(edition('targets'), {}));
  const snapshot = sign('snapshot', snapshotContent(edition('snapshot'), { version: 1, bytes: targets }));
  const timestamp = sign(
    'timestamp',
    timestampContent(edition('timestamp'), { version: 1, bytes: snapshot }),
  );
  durableFs.writeFile('keys.root', join(keysDirectory, anchorName), root, 0o644);
  writer.writeMetadata('root', 1, root);
  writer.writeMetadata('targets', 1, targets);
  writer.writeMetadata('snapshot', 1, snapshot);
  writer.goLive(timestamp);
  return root;
}
