// The publisher of a simulated host, with a repository simulator: good releases, releases that a check or a worker refuses,
// and bombs. Owns the kind of each release. Deletes old metadata and archives, so that the repository does not grow.
import { createHash } from 'node:crypto';
import type { ReleaseInfo } from '../../../src/core/release/release.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import { bundleTar, manifestOf, pack, sha256 } from '../../kit/repository/archive-builder.js';
import { manifestBombs } from '../../kit/repository/manifest-bombs.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';

export const bundles = ['access', 'dns-edge'] as const;
export type Bundle = (typeof bundles)[number];
/** `refused` by a check: never active. `nacked` by a worker: may be active for a moment. */
export type ReleaseKind = 'good' | 'refused' | 'nacked' | 'bomb';

export interface SimulatedPublisher {
  readonly repository: RepositorySimulator;
  publish(bundle: Bundle, kind: Exclude<ReleaseKind, 'bomb'>): number;
  /** Publishes the next bomb of the corpus, in turn. @returns the name of the bomb */
  publishBomb(bundle: Bundle): string;
  /** The serial of the newest release. */
  serial(bundle: Bundle): number;
  /** Signs snapshot and timestamp again, by the publisher's clock. */
  sign(): void;
  rotate(): string;
  /** From now on the publisher's clock differs from the true time by `offsetMs`. */
  setWrongBy(offsetMs: number): void;
  /** @param digest of the files of the release @returns undefined for an unknown release */
  kindOf(bundle: string, digest: string): ReleaseKind | undefined;
}

export interface PublisherOptions {
  readonly nowMs: () => number;
  readonly random: Seeded;
  /** The length of the manifest of each bomb. */
  readonly bombBytes: number;
}

/** Versions of a role that stay on the server. Hosts request older versions of root only. */
const keptVersions = 4;

export function simulatedPublisher({ nowMs, random, bombBytes }: PublisherOptions): SimulatedPublisher {
  const repository = new RepositorySimulator({ nowMs: nowMs() });
  const kinds = new Map<string, ReleaseKind>();
  const serials = new Map<string, number>(bundles.map((name) => [name, 0]));
  const bombs = packedBombs(bombBytes);
  let nextBomb = random.int(bombs.length);
  let signedMs = nowMs();
  let wrongByMs = 0;
  const moveTime = (): void => {
    const atMs = nowMs() + wrongByMs;
    repository.moveTime(atMs - signedMs);
    signedMs = atMs;
  };
  const serve = (bundle: Bundle, { archive, manifest }: Packed): number => {
    moveTime();
    const serial = (serials.get(bundle) ?? 0) + 1;
    serials.set(bundle, serial);
    repository.publishRelease({ bundle, channel: 'stable', serial, manifest }, archive);
    forget(repository);
    return serial;
  };
  return {
    repository,
    publish: (bundle, kind) => {
      const files = filesOf(bundle, kind, (serials.get(bundle) ?? 0) + 1);
      const manifest = manifestOf(files);
      kinds.set(`${bundle} ${digestOf(files)}`, kind);
      return serve(bundle, {
        archive: pack(bundleTar(files)),
        manifest: { digest: sha256(manifest), length: manifest.length },
      });
    },
    publishBomb: (bundle) => {
      const bomb = bombs[nextBomb++ % bombs.length] as Packed & { readonly name: string };
      serve(bundle, bomb);
      return bomb.name;
    },
    serial: (bundle) => serials.get(bundle) ?? 0,
    sign: () => {
      moveTime();
      repository.bumpSnapshot();
      forget(repository);
    },
    rotate: () => {
      const role = random.pick(['root', 'timestamp', 'snapshot', 'targets'] as const);
      moveTime();
      repository.rotate(role);
      repository.publish();
      forget(repository);
      return role;
    },
    setWrongBy: (offsetMs) => {
      wrongByMs = offsetMs;
    },
    kindOf: (bundle, digest) => kinds.get(`${bundle} ${digest}`),
  };
}

/** The archive that is served, and the signed reference to its manifest. */
interface Packed {
  readonly archive: Buffer;
  readonly manifest: ReleaseInfo['manifest'];
}

/** Packs each bomb once and drops its manifest, which is a thousand times as large. */
function packedBombs(bytes: number): (Packed & { readonly name: string })[] {
  const packed = [];
  for (const { name, archive, manifest, manifestLength } of manifestBombs({ bytes })) {
    const length = manifestLength ?? manifest.length;
    packed.push({ name, archive, manifest: { digest: sha256(manifest), length } });
  }
  return packed;
}

interface PolicyFile {
  readonly path: string;
  readonly content: string;
}

function filesOf(bundle: Bundle, kind: ReleaseKind, serial: number): PolicyFile[] {
  const names = ['a.txt', 'deep/er/b.txt', 'block.rpz'];
  const files = names.map((path) => ({ path, content: `${bundle} ${serial} ${path}\n`.repeat(20) }));
  return kind === 'good' ? files : [...files, { path: kind, content: 'x' }];
}

/** @returns the same digest for a published release and for its tree on disk */
export function digestOf(files: readonly PolicyFile[]): string {
  const sorted = [...files].sort((one, other) => (one.path < other.path ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify(sorted.map(({ path, content }) => [path, content])))
    .digest('base64');
}

function forget({ files, targets, snapshot, timestamp }: RepositorySimulator): void {
  const versions = new Map([
    ['targets', targets.version],
    ['snapshot', snapshot.version],
    ['timestamp', timestamp.version],
  ]);
  const listed = Object.values(targets.targets as Record<string, { hashes: { sha256: string } }>);
  for (const path of files.keys()) {
    const [, version, role = ''] = /^metadata\/(\d+)\.(\w+)\.json$/.exec(path) ?? [];
    if (version !== undefined && Number(version) <= (versions.get(role) ?? 0) - keptVersions)
      files.delete(path);
    if (path.startsWith('targets/') && !listed.some(({ hashes }) => path.includes(hashes.sha256)))
      files.delete(path);
  }
}
