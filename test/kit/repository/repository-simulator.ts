// A TUF repository in memory for attacks: a test changes any role, signs with any keys, delegates, corrupts or removes files,
// and reads the requests. It shares no code with the publisher.
import { targetPath } from '../../../src/core/names.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../../src/core/release/release.js';
import type {
  MetadataSignature,
  MetaFile,
  RoleKeys,
  TopLevelRole,
} from '../../../src/core/tuf/tuf-metadata.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { encodePath } from '../../../src/trust/sources/source-path.js';
import { makeKeys, makeSuccessor, type SimulatedKey, signWith } from './simulated-keys.js';
import {
  appendDelegation,
  type Delegation,
  dayMs,
  digestsOf,
  encodeEnvelope,
  isoTime,
  type Loose,
  newSigned,
} from './simulated-metadata.js';
import { simulatedSource } from './simulated-source.js';

export { makeKey, type SimulatedKey, signWith } from './simulated-keys.js';
export { encodeEnvelope, isoTime, type Loose } from './simulated-metadata.js';

export interface SimulatorOptions {
  /** Epoch milliseconds of the simulated publisher; validity periods begin at this time. */
  readonly nowMs: number;
  readonly consistent?: boolean | 'absent';
}

export interface SimulatedRole {
  readonly signed: Loose;
  keys: SimulatedKey[];
}

export interface AddedTarget {
  /** Role that lists it; targets by default. */
  readonly listedBy?: string;
  readonly digests?: readonly string[];
  readonly custom?: unknown;
}

/**
 * @example
 * const repository = new RepositorySimulator({ nowMs: clock.nowMs() });
 * repository.delegate('targets', { name: 'dns-team', paths: ['dns/*'] });
 * repository.publish();
 * repository.alter('snapshot', (signed) => (signed.version = 1)); // what is served, not the state
 */
export class RepositorySimulator {
  /** Served files by percent-encoded path. */
  readonly files = new Map<string, Buffer>();
  /** Requests in order as `GET path`, with ` if-none-match` if conditional. */
  readonly requests: string[] = [];
  readonly keys: Record<TopLevelRole, SimulatedKey[]>;
  readonly root: Loose;
  readonly timestamp: Loose;
  readonly snapshot: Loose;
  readonly targets: Loose;
  /** Delegated roles by name, in order of their first delegation. */
  readonly delegated = new Map<string, SimulatedRole>();
  /** Keys that sign a role, if they are not the keys of the role. */
  readonly signers = new Map<string, readonly SimulatedKey[]>();
  /** Signatures appended to those of a role. */
  readonly extraSignatures = new Map<string, readonly MetadataSignature[]>();
  /** Whether timestamp and snapshot have digests and lengths; off by default as in most repositories. */
  pinned = false;
  /** Algorithms of those digests. */
  digests: readonly string[] = ['sha256'];
  #nowMs: number;

  constructor({ nowMs, consistent = true }: SimulatorOptions) {
    this.#nowMs = nowMs;
    this.keys = {
      root: makeKeys(3),
      timestamp: makeKeys(1),
      snapshot: makeKeys(1),
      targets: makeKeys(1),
    };
    this.root = { ...newSigned('root', nowMs + 365 * dayMs), keys: {}, roles: {} };
    if (consistent !== 'absent') this.root.consistent_snapshot = consistent;
    this.timestamp = {
      ...newSigned('timestamp', nowMs + 7 * dayMs),
      meta: {},
      writ: { signedAt: isoTime(nowMs) },
    };
    this.snapshot = { ...newSigned('snapshot', nowMs + 30 * dayMs), meta: {} };
    this.targets = { ...newSigned('targets', nowMs + 365 * dayMs), targets: {} };
    this.listKeys('root', 2);
    for (const role of ['timestamp', 'snapshot', 'targets'] as const) this.listKeys(role, 1);
    this.writeRoot();
    this.writeTargets();
  }

  get bootstrapRoot(): Buffer {
    return this.file('1.root.json');
  }

  /** @returns the bytes of a served metadata file */
  file(name: string): Buffer {
    const bytes = this.files.get(metadata(name));
    if (bytes === undefined) throw new Error(`the simulator has no ${name}`);
    return bytes;
  }

  serve(name: string, bytes: Uint8Array): void {
    this.files.set(metadata(name), Buffer.from(bytes));
  }

  withhold(name: string): void {
    if (!this.files.delete(metadata(name))) throw new Error(`the simulator has no ${name}`);
  }

  /** @returns the served name of the current version of a role */
  nameOf(role: string): string {
    const versioned = role === 'root' || (role !== 'timestamp' && this.root.consistent_snapshot === true);
    return versioned ? `${this.signedOf(role).version}.${role}.json` : `${role}.json`;
  }

  /** @returns the state of a role, top-level or delegated, before its signatures */
  signedOf(role: string): Loose {
    return isTopLevel(role) ? this[role] : this.#delegatedRole(role).signed;
  }

  /** Advances the publisher's time, from which later files are signed. */
  moveTime(byMs: number): void {
    this.#nowMs += byMs;
    this.timestamp.writ = { signedAt: isoTime(this.#nowMs) };
    this.timestamp.expires = isoTime(this.#nowMs + 7 * dayMs);
    this.snapshot.expires = isoTime(this.#nowMs + 30 * dayMs);
  }

  /** Lists the role's current keys in the next root. */
  listKeys(role: TopLevelRole, threshold: number): void {
    for (const { id, key } of this.keys[role]) this.root.keys[id] = key;
    const roleKeys: RoleKeys = { keyids: this.keys[role].map(({ id }) => id), threshold };
    this.root.roles[role] = roleKeys;
  }

  /** Sets other keys and another threshold of a role in the next root. */
  setKeys(role: TopLevelRole, keys: readonly SimulatedKey[], threshold: number): void {
    this.keys[role] = [...keys];
    this.listKeys(role, threshold);
  }

  /** Replaces the keys of a role by new ones of the same types, and writes the next root. */
  rotate(role: TopLevelRole): void {
    const outgoing = this.keys.root;
    this.setKeys(role, this.keys[role].map(makeSuccessor), this.root.roles[role].threshold);
    this.bumpRoot(role === 'root' ? [...outgoing, ...this.keys.root] : outgoing);
  }

  /** Writes the next root; signed by the current root keys by default. */
  bumpRoot(signers?: readonly SimulatedKey[]): void {
    this.root.version += 1;
    this.writeRoot(signers);
  }

  writeRoot(signers: readonly SimulatedKey[] = this.signersOf('root')): void {
    this.serve(`${this.root.version}.root.json`, encodeEnvelope(signWith(signers, this.root), this.root));
  }

  /** Writes the current targets and delegated roles, and all files that list them. */
  writeTargets(): void {
    for (const role of [...this.delegated.keys(), 'targets']) {
      const bytes = this.seal(role);
      this.snapshot.meta[`${role}.json`] = this.describe(this.signedOf(role).version, bytes);
      this.serve(this.nameOf(role), bytes);
    }
    this.writeSnapshot();
  }

  writeSnapshot(): void {
    const bytes = this.seal('snapshot');
    this.timestamp.meta['snapshot.json'] = this.describe(this.snapshot.version, bytes);
    this.serve(this.nameOf('snapshot'), bytes);
    this.writeTimestamp();
  }

  writeTimestamp(): void {
    this.serve('timestamp.json', this.seal('timestamp'));
  }

  /** Writes a new version of timestamp only, as the server's re-signing does. */
  bumpTimestamp(): void {
    this.timestamp.version += 1;
    this.writeTimestamp();
  }

  bumpSnapshot(): void {
    this.snapshot.version += 1;
    this.timestamp.version += 1;
    this.writeSnapshot();
  }

  /** Publishes: targets, snapshot and timestamp get the next version; delegated roles keep theirs. */
  publish(): void {
    this.targets.version += 1;
    this.snapshot.version += 1;
    this.timestamp.version += 1;
    this.writeTargets();
  }

  /** Lists a role in `delegator`; a missing role is made with one new key. */
  delegate(delegator: string, delegation: Delegation): SimulatedRole {
    const known = this.delegated.get(delegation.name);
    const keys = delegation.keys ?? known?.keys ?? makeKeys(1);
    const signed = known?.signed ?? { ...newSigned('targets', this.#nowMs + 365 * dayMs), targets: {} };
    const role = known ?? { signed, keys: [...keys] };
    this.delegated.set(delegation.name, role);
    appendDelegation(this.signedOf(delegator), { ...delegation, keys });
    return role;
  }

  /** Lists a target, and serves it under each name that a client may request. publish() makes it known. */
  addTarget(path: string, bytes: Buffer, target: AddedTarget = {}): void {
    const { listedBy = 'targets', digests = ['sha256'], custom } = target;
    const hashes = digestsOf(bytes, digests);
    this.signedOf(listedBy).targets[path] = {
      length: bytes.length,
      hashes,
      ...(custom === undefined ? {} : { custom }),
    };
    const segments = path.split('/');
    const name = segments.pop() ?? '';
    const prefixes =
      this.root.consistent_snapshot === true ? Object.values(hashes).map((hex) => `${hex}.`) : [''];
    for (const prefix of prefixes) {
      this.files.set(encodePath('targets', ...segments, `${prefix}${name}`), bytes);
    }
  }

  /** Publishes an archive under a bundle and channel, with all signed members. */
  publishRelease(
    release: Partial<ReleaseInfo> & Pick<ReleaseInfo, 'bundle' | 'channel'>,
    archive: Buffer,
    target: AddedTarget = {},
  ): void {
    this.addRelease(release, archive, target);
    this.publish();
  }

  /** As publishRelease, without publish(). */
  addRelease(
    release: Partial<ReleaseInfo> & Pick<ReleaseInfo, 'bundle' | 'channel'>,
    archive: Buffer,
    target: AddedTarget = {},
  ): void {
    const hex = digestsOf(archive, ['sha256'])['sha256'] ?? '';
    const info = {
      serial: 1,
      revision: 'test',
      createdAtMs: this.#nowMs,
      manifest: { digest: `sha256:${hex}` as ReleaseInfo['manifest']['digest'], length: 1 },
      withdrawn: [],
      ...release,
    };
    const custom = { writ: encodeReleaseInfo(info) };
    this.addTarget(targetPath(info.bundle, info.channel), archive, { custom, ...target });
  }

  /** Serves a changed copy of a role under its current name, signed like the role; the state is unchanged. */
  alter(role: string, change: (signed: Loose) => void): void {
    const signed = structuredClone(this.signedOf(role));
    const name = this.nameOf(role);
    change(signed);
    this.serve(name, this.seal(role, signed));
  }

  seal(role: string, signed: unknown = this.signedOf(role)): Buffer {
    const signatures = signWith(this.signersOf(role), signed);
    return encodeEnvelope([...signatures, ...(this.extraSignatures.get(role) ?? [])], signed);
  }

  signersOf(role: string): readonly SimulatedKey[] {
    return this.signers.get(role) ?? (isTopLevel(role) ? this.keys[role] : this.#delegatedRole(role).keys);
  }

  describe(version: number, bytes: Buffer): MetaFile {
    if (!this.pinned) return { version };
    return { version, length: bytes.length, hashes: digestsOf(bytes, this.digests) };
  }

  /** Empties and returns the list of requests. */
  takeRequests(): string[] {
    return this.requests.splice(0);
  }

  /** @returns a source that serves the current files */
  source(): RepositorySource {
    return simulatedSource(this.files, this.requests);
  }

  #delegatedRole(name: string): SimulatedRole {
    const role = this.delegated.get(name);
    if (role === undefined) throw new Error(`the simulator has no role ${name}`);
    return role;
  }
}

const metadata = (name: string): string => encodePath('metadata', name);

function isTopLevel(role: string): role is TopLevelRole {
  return role === 'root' || role === 'timestamp' || role === 'snapshot' || role === 'targets';
}
