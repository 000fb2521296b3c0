// A TUF repository in memory that a test can bend: change any role, sign with any keys, spoil any byte, and
// look at the requests. Owns its Ed25519 keys, made by node:crypto; shares no code with the publisher.
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { targetPath } from '../../src/core/names.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../src/core/release.js';
import { keyId } from '../../src/core/signature-schemes.js';
import type {
  MetadataKey,
  MetadataSignature,
  MetaFile,
  RoleKeys,
  TopLevelRole,
} from '../../src/core/tuf-metadata.js';
import { exactLength, tooLarge } from '../../src/trust/exact-length.js';
import type { RepositorySource } from '../../src/trust/repository-source.js';

export interface SimulatedKey {
  readonly id: string;
  readonly key: MetadataKey;
  readonly secret: KeyObject;
}

/** Signed parts as plain values, so that a test can put anything into them. */
// biome-ignore lint/suspicious/noExplicitAny: tests write what no type would let them
export type Loose = any;

export interface SimulatorOptions {
  /** Epoch milliseconds of the simulated publisher; lives are counted from it. */
  readonly nowMs: number;
  readonly consistent?: boolean;
}

const dayMs = 86_400_000;
const metadata = (name: string): string => `metadata/${name}`;

export function makeKey(): SimulatedKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32);
  const key = { keytype: 'ed25519', scheme: 'ed25519', keyval: { public: raw.toString('hex') } };
  return { id: keyId(key), key, secret: privateKey };
}

export function signWith(keys: readonly SimulatedKey[], signed: unknown): MetadataSignature[] {
  const bytes = canonicalBytes(signed);
  return keys.map(({ id, secret }) => ({ keyid: id, sig: sign(null, bytes, secret).toString('hex') }));
}

export function encodeEnvelope(signatures: readonly MetadataSignature[], signed: unknown): Buffer {
  return canonicalBytes({ signatures, signed });
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/** @example const repository = new RepositorySimulator({ nowMs: clock.nowMs() }); */
export class RepositorySimulator {
  /** What is served, by path. */
  readonly files = new Map<string, Buffer>();
  /** `GET path`, with ` if-none-match` where conditional, in order. */
  readonly requests: string[] = [];
  readonly keys: Record<TopLevelRole, SimulatedKey[]>;
  readonly root: Loose;
  readonly timestamp: Loose;
  readonly snapshot: Loose;
  readonly targets: Loose;
  /** Hashes and lengths in timestamp and snapshot; off by default as in most repositories. */
  pinned = false;
  #nowMs: number;

  constructor(options: SimulatorOptions) {
    this.#nowMs = options.nowMs;
    this.keys = {
      root: [makeKey(), makeKey(), makeKey()],
      timestamp: [makeKey()],
      snapshot: [makeKey()],
      targets: [makeKey()],
    };
    const base = (type: TopLevelRole, days: number) => ({
      _type: type,
      spec_version: '1.0.34',
      version: 1,
      expires: isoTime(options.nowMs + days * dayMs),
    });
    this.root = {
      ...base('root', 365),
      consistent_snapshot: options.consistent ?? true,
      keys: {},
      roles: {},
    };
    this.timestamp = { ...base('timestamp', 7), meta: {}, writ: { signedAt: isoTime(options.nowMs) } };
    this.snapshot = { ...base('snapshot', 30), meta: {} };
    this.targets = { ...base('targets', 365), targets: {} };
    this.listKeys('root', 2);
    for (const role of ['timestamp', 'snapshot', 'targets'] as const) this.listKeys(role, 1);
    this.writeRoot();
    this.writeTargets();
  }

  get bootstrapRoot(): Buffer {
    return this.file('1.root.json');
  }

  /** A served metadata file. */
  file(name: string): Buffer {
    const bytes = this.files.get(metadata(name));
    if (bytes === undefined) throw new Error(`the simulator has no ${name}`);
    return bytes;
  }

  serve(name: string, bytes: Uint8Array): void {
    this.files.set(metadata(name), Buffer.from(bytes));
  }

  /** Time passes for the publisher: later files are signed, and end, later. */
  moveTime(byMs: number): void {
    this.#nowMs += byMs;
    this.timestamp.writ = { signedAt: isoTime(this.#nowMs) };
    this.timestamp.expires = isoTime(this.#nowMs + 7 * dayMs);
    this.snapshot.expires = isoTime(this.#nowMs + 30 * dayMs);
  }

  /** Puts the role's present keys into the root that will be written next. */
  listKeys(role: TopLevelRole, threshold: number): void {
    for (const { id, key } of this.keys[role]) this.root.keys[id] = key;
    const roleKeys: RoleKeys = { keyids: this.keys[role].map(({ id }) => id), threshold };
    this.root.roles[role] = roleKeys;
  }

  /** Gives a role new keys, writes the next root, and re-signs the role under them. */
  rotate(role: TopLevelRole): void {
    const outgoing = this.keys.root;
    this.keys[role] = this.keys[role].map(makeKey);
    this.listKeys(role, this.root.roles[role].threshold);
    this.bumpRoot(role === 'root' ? [...outgoing, ...this.keys.root] : outgoing);
  }

  /** Writes the next root; signed by the present root keys unless told otherwise. */
  bumpRoot(signers: readonly SimulatedKey[] = this.keys.root): void {
    this.root.version += 1;
    this.writeRoot(signers);
  }

  writeRoot(signers: readonly SimulatedKey[] = this.keys.root): void {
    this.serve(`${this.root.version}.root.json`, encodeEnvelope(signWith(signers, this.root), this.root));
  }

  /** Writes targets as they are now, and all that names them. */
  writeTargets(): void {
    const bytes = this.seal('targets');
    this.snapshot.meta['targets.json'] = this.describe(this.targets.version, bytes);
    this.serve(this.#name('targets', this.targets.version), bytes);
    this.writeSnapshot();
  }

  writeSnapshot(): void {
    const bytes = this.seal('snapshot');
    this.timestamp.meta['snapshot.json'] = this.describe(this.snapshot.version, bytes);
    this.serve(this.#name('snapshot', this.snapshot.version), bytes);
    this.writeTimestamp();
  }

  writeTimestamp(): void {
    this.serve('timestamp.json', this.seal('timestamp'));
  }

  /** A new version of timestamp alone, as the server's re-signing makes it. */
  bumpTimestamp(): void {
    this.timestamp.version += 1;
    this.writeTimestamp();
  }

  bumpSnapshot(): void {
    this.snapshot.version += 1;
    this.timestamp.version += 1;
    this.writeSnapshot();
  }

  /** A publish: targets, snapshot and timestamp each one version on. */
  publish(): void {
    this.targets.version += 1;
    this.snapshot.version += 1;
    this.timestamp.version += 1;
    this.writeTargets();
  }

  /** Publishes an archive under a bundle and channel, with all that Writ signs about it. */
  publishRelease(
    release: Partial<ReleaseInfo> & Pick<ReleaseInfo, 'bundle' | 'channel'>,
    archive: Buffer,
  ): void {
    const hex = createHash('sha256').update(archive).digest('hex');
    const info = {
      serial: 1,
      revision: 'test',
      createdAtMs: this.#nowMs,
      manifest: { digest: `sha256:${hex}` as ReleaseInfo['manifest']['digest'], length: 1 },
      withdrawn: [],
      ...release,
    };
    this.targets.targets[targetPath(info.bundle, info.channel)] = {
      length: archive.length,
      hashes: { sha256: hex },
      custom: { writ: encodeReleaseInfo(info) },
    };
    const prefix = this.root.consistent_snapshot ? `${hex}.` : '';
    this.files.set(`targets/${info.bundle}/${prefix}${info.channel}.tar.br`, archive);
    this.publish();
  }

  seal(role: Exclude<TopLevelRole, 'root'>): Buffer {
    return encodeEnvelope(signWith(this.keys[role], this[role]), this[role]);
  }

  describe(version: number, bytes: Buffer): MetaFile {
    if (!this.pinned) return { version };
    return {
      version,
      length: bytes.length,
      hashes: { sha256: createHash('sha256').update(bytes).digest('hex') },
    };
  }

  /** Empties and returns the list of requests. */
  takeRequests(): string[] {
    return this.requests.splice(0);
  }

  /** A source that serves the present files; ETags are digests of content. */
  source(): RepositorySource {
    return {
      location: 'memory:',
      fetch: async (path, { maxBytes, etag }) => {
        this.requests.push(`GET ${path}${etag === undefined ? '' : ' if-none-match'}`);
        const bytes = this.files.get(path);
        if (bytes === undefined) return { kind: 'absent' };
        const current = createHash('sha256').update(bytes).digest('hex');
        if (etag === current) return { kind: 'not-modified' };
        if (bytes.length > maxBytes) throw tooLarge(path, maxBytes, bytes.length);
        return { kind: 'found', bytes, etag: current };
      },
      stream: (path, { length, offset = 0 }) => {
        this.requests.push(`STREAM ${path} from ${offset}`);
        const bytes = this.files.get(path) ?? Buffer.alloc(0);
        return exactLength(chunksOf(bytes.subarray(offset)), { expected: length - offset, what: path });
      },
      close: async () => undefined,
    };
  }

  #name(role: string, version: number): string {
    return this.root.consistent_snapshot ? `${version}.${role}.json` : `${role}.json`;
  }
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
}
