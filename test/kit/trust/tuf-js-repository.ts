// A TUF repository in memory, made and signed by @tufjs/models, to test that the client accepts another implementation. It has
// keys of three types. Key ids are computed here, so that a fault of Writ's own canonical form cannot hide itself.
import { createHash } from 'node:crypto';
import {
  Key,
  Metadata,
  MetaFile,
  Root,
  Signature,
  Snapshot,
  TargetFile,
  Targets,
  Timestamp,
} from '@tufjs/models';
import { Delegations } from '@tufjs/models/dist/delegations.js';
import { DelegatedRole, Role } from '@tufjs/models/dist/role.js';
import {
  type KeyType,
  keyKinds,
  makeKeyPair,
  publicText,
  seededKeyPair,
  signatureOf,
} from '../repository/key-pairs.js';
import { dayMs, isoTime } from '../repository/simulated-metadata.js';

export interface ForeignKey {
  readonly id: string;
  readonly key: Key;
  sign(bytes: Buffer): Signature;
}

/** A delegated role with its targets and its own delegations. */
export interface ForeignDelegation {
  readonly name: string;
  readonly keys: readonly ForeignKey[];
  readonly threshold?: number;
  readonly terminating?: boolean;
  readonly paths?: readonly string[];
  readonly pathHashPrefixes?: readonly string[];
  readonly targets?: ForeignTargets;
  readonly delegations?: readonly ForeignDelegation[];
}

export interface ForeignTarget {
  readonly content: Buffer;
  /** Member `custom` of the entry. */
  readonly custom?: object;
}

export type ForeignTargets = Readonly<Record<string, ForeignTarget>>;

/** @returns the entry of a Writ release on `stable`, which other implementations ignore */
export function foreignRelease(bundle: string, content: Buffer, createdAtMs: number): ForeignTargets {
  const writ = {
    bundle,
    channel: 'stable',
    serial: 1,
    revision: 'r1',
    createdAt: new Date(createdAtMs).toISOString(),
    manifest: { sha256: createHash('sha256').update(content).digest('hex'), length: 1 },
    withdrawn: [],
  };
  return { [`${bundle}/stable.tar.br`]: { content, custom: { writ } } };
}

export type TopRole = 'root' | 'timestamp' | 'snapshot' | 'targets';

export interface ForeignRepositoryOptions {
  /** Epoch milliseconds of the publisher; each role is valid for 30 days. */
  readonly nowMs: number;
  readonly keys: Readonly<Record<TopRole, readonly ForeignKey[]>>;
  readonly thresholds?: Partial<Record<TopRole, number>>;
  readonly consistent?: boolean;
  /** Whether timestamp and snapshot have lengths and digests. */
  readonly pinned?: boolean;
  readonly version?: number;
  readonly targets?: ForeignTargets;
  readonly delegations?: readonly ForeignDelegation[];
}

/** @param seed makes an Ed25519 key equal in each run; without it, and for the other types, the key is random */
export function foreignKey(type: KeyType, seed?: string): ForeignKey {
  const { publicKey, privateKey } =
    type === 'ed25519' && seed !== undefined ? seededKeyPair(seed) : makeKeyPair(type);
  const { keytype, scheme } = keyKinds[type];
  const text = publicText(type, publicKey);
  // Canonical JSON escapes no line feed, so that the PEM is unchanged.
  const canonical = `{"keytype":"${keytype}","keyval":{"public":"${text}"},"scheme":"${scheme}"}`;
  const id = createHash('sha256').update(canonical).digest('hex');
  return {
    id,
    key: new Key({ keyID: id, keyType: keytype, scheme, keyVal: { public: text } }),
    sign: (bytes) => new Signature({ keyID: id, sig: signatureOf(type, privateKey, bytes) }),
  };
}

export interface ForeignRepository {
  /** Served files by path below the top: `metadata/...`, `targets/...`. */
  readonly files: Map<string, Buffer>;
  readonly bootstrapRoot: Buffer;
}

/** @returns all files of one version of a repository, with signatures */
export function foreignRepository(options: ForeignRepositoryOptions): ForeignRepository {
  const { keys, consistent = true } = options;
  const base = baseOf(options);
  const files = new Map<string, Buffer>();
  const root = sealed(rootOf(options), keys.root);
  files.set(`metadata/${base.version}.root.json`, root);
  const meta: Record<string, MetaFile> = {};
  const put = (name: string, bytes: Buffer): void => {
    meta[`${name}.json`] = describe(base.version, bytes, options);
    const file = encodeURIComponent(name);
    files.set(`metadata/${consistent ? `${base.version}.` : ''}${file}.json`, bytes);
  };
  const place = (targets: ForeignTargets = {}): void => {
    for (const [path, { content }] of Object.entries(targets))
      files.set(targetFilePath(path, content, options), content);
  };
  for (const role of allDelegations(options.delegations)) {
    put(role.name, sealed(targetsOf(base, role.targets, role.delegations), role.keys));
    place(role.targets);
  }
  put('targets', sealed(targetsOf(base, options.targets, options.delegations), keys.targets));
  place(options.targets);
  const snapshot = sealed(new Snapshot({ ...base, meta: { ...meta } }), keys.snapshot);
  put('snapshot', snapshot);
  const snapshotMeta = describe(base.version, snapshot, options);
  files.set('metadata/timestamp.json', sealed(new Timestamp({ ...base, snapshotMeta }), keys.timestamp));
  return { files, bootstrapRoot: root };
}

interface Base {
  readonly version: number;
  readonly specVersion: string;
  readonly expires: string;
}

function baseOf({ nowMs, version = 1 }: ForeignRepositoryOptions): Base {
  return { version, specVersion: '1.0.31', expires: isoTime(nowMs + 30 * dayMs) };
}

function rootOf(options: ForeignRepositoryOptions): Root {
  const { keys, thresholds = {}, consistent = true } = options;
  const names = ['root', 'timestamp', 'snapshot', 'targets'] as const;
  const roles = names.map((name) => {
    const role = new Role({ keyIDs: keys[name].map(({ id }) => id), threshold: thresholds[name] ?? 1 });
    return [name, role] as const;
  });
  const listed = names.flatMap((name) => keys[name]).map(({ id, key }) => [id, key] as const);
  return new Root({
    ...baseOf(options),
    keys: Object.fromEntries(listed),
    roles: Object.fromEntries(roles),
    consistentSnapshot: consistent,
  });
}

function targetsOf(
  base: Base,
  targets: ForeignTargets = {},
  delegations: readonly ForeignDelegation[] = [],
): Targets {
  const listed = Object.entries(targets).map(([path, target]) => [path, targetFile(path, target)] as const);
  return new Targets({
    ...base,
    targets: Object.fromEntries(listed),
    ...(delegations.length === 0 ? {} : { delegations: delegationsOf(delegations) }),
  });
}

function targetFile(path: string, { content, custom }: ForeignTarget): TargetFile {
  const hashes = { sha256: createHash('sha256').update(content).digest('hex') };
  const extra =
    custom === undefined ? {} : { unrecognizedFields: { custom: JSON.parse(JSON.stringify(custom)) } };
  return new TargetFile({ path, length: content.length, hashes, ...extra });
}

function delegationsOf(delegations: readonly ForeignDelegation[]): Delegations {
  const keys = delegations.flatMap((role) => role.keys).map(({ id, key }) => [id, key] as const);
  const roles = delegations.map((role) => {
    const { name, threshold = 1, terminating = false, paths, pathHashPrefixes } = role;
    const delegated = new DelegatedRole({
      name,
      threshold,
      terminating,
      keyIDs: role.keys.map(({ id }) => id),
      ...(paths === undefined ? {} : { paths: [...paths] }),
      ...(pathHashPrefixes === undefined ? {} : { pathHashPrefixes: [...pathHashPrefixes] }),
    });
    return [name, delegated] as const;
  });
  return new Delegations({ keys: Object.fromEntries(keys), roles: Object.fromEntries(roles) });
}

function allDelegations(roles: readonly ForeignDelegation[] = []): ForeignDelegation[] {
  return roles.flatMap((role) => [role, ...allDelegations(role.delegations)]);
}

function describe(version: number, bytes: Buffer, { pinned = false }: ForeignRepositoryOptions): MetaFile {
  if (!pinned) return new MetaFile({ version });
  const hashes = { sha256: createHash('sha256').update(bytes).digest('hex') };
  return new MetaFile({ version, length: bytes.length, hashes });
}

function sealed(signed: Root | Timestamp | Snapshot | Targets, keys: readonly ForeignKey[]): Buffer {
  const metadata = new Metadata(signed);
  for (const key of keys) metadata.sign((bytes) => key.sign(bytes));
  // Indented as many publishers write it: white space is not signed.
  return Buffer.from(JSON.stringify(metadata.toJSON(), null, 1));
}

/** @returns the path of a target; consistent snapshots add its digest to the last part of the name */
function targetFilePath(
  path: string,
  content: Buffer,
  { consistent = true }: ForeignRepositoryOptions,
): string {
  const hex = createHash('sha256').update(content).digest('hex');
  const parts = path.split('/');
  const name = parts.pop() ?? '';
  return ['targets', ...parts, consistent ? `${hex}.${name}` : name].join('/');
}
