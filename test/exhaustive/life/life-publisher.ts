// The publisher of a life: releases that are good, that a check refuses, that a worker refuses, and bombs, signed by a
// simulated repository. Owns what each release is; forgets what nobody may ask for any more, so that it does not grow.
import { createHash } from 'node:crypto';
import type { ReleaseInfo } from '../../../src/core/release/release.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import { bundleTar, manifestOf, pack, sha256 } from '../../kit/repository/archive-builder.js';
import { manifestBombs } from '../../kit/repository/manifest-bombs.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';

export const bundles = ['access', 'dns-edge'] as const;
export type Bundle = (typeof bundles)[number];
/** `refused` by a check, `nacked` by a worker: that one may be active for a moment. */
export type ReleaseKind = 'good' | 'refused' | 'nacked' | 'bomb';

export interface LifePublisher {
  readonly repository: RepositorySimulator;
  publish(bundle: Bundle, kind: Exclude<ReleaseKind, 'bomb'>): number;
  /** The next of the corpus, round and round. @returns its name */
  publishBomb(bundle: Bundle): string;
  /** Of the newest release. */
  serial(bundle: Bundle): number;
  /** Signs snapshot and timestamp again, by the publisher's clock. */
  sign(): void;
  rotate(): string;
  /** The publisher's clock is wrong by so much from now on. */
  setWrongBy(offsetMs: number): void;
  /** By `BUNDLE DIGEST` of its files. */
  kindOf(bundle: string, digest: string): ReleaseKind | undefined;
}

export interface PublisherOptions {
  readonly nowMs: () => number;
  readonly random: Seeded;
  /** Of the manifest of each bomb. */
  readonly bombBytes: number;
}

/** Of metadata that is served: a host never asks for an older one, but for roots. */
const keptVersions = 4;

export function lifePublisher({ nowMs, random, bombBytes }: PublisherOptions): LifePublisher {
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

/** What is signed of a release, and served. */
interface Packed {
  readonly archive: Buffer;
  readonly manifest: ReleaseInfo['manifest'];
}

/** Without what they become: that is a thousand times as much. */
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

/** The same of a tree on disk as of what was published. */
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
