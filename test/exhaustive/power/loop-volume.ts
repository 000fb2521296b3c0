// File systems in image files, for power cuts: a copy of a mounted image holds what the file system has written out, without
// what it has in memory. Owns making, mounting and copying. Must run in a private mount namespace (`unshare -m`), so that no
// mount and no loop device outlives the process.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';

export type FileSystem = 'ext4' | 'xfs' | 'btrfs';

interface Kind {
  /** XFS refuses to be smaller than 300 MB; the images are sparse. */
  readonly bytes: number;
  readonly make: readonly [string, ...string[]];
  /** Long intervals, so that only flushes write anything. XFS writes every 30 s, and a cycle is shorter. */
  readonly mountOptions: readonly string[];
}

const kinds: Readonly<Record<FileSystem, Kind>> = {
  ext4: {
    bytes: 64 << 20,
    make: ['mkfs.ext4', '-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0'],
    mountOptions: ['commit=900'],
  },
  xfs: { bytes: 320 << 20, make: ['mkfs.xfs', '-q', '-f'], mountOptions: [] },
  btrfs: { bytes: 128 << 20, make: ['mkfs.btrfs', '-q', '-f'], mountOptions: ['commit=300'] },
};

/** @returns the file systems that this machine can create and mount, and the reason for each of the others */
export function knownFileSystems(scratch: string): { usable: FileSystem[]; missing: string[] } {
  const usable: FileSystem[] = [];
  const missing: string[] = [];
  for (const kind of Object.keys(kinds) as FileSystem[]) {
    const image = `${scratch}/try.img`;
    const point = `${scratch}/try`;
    try {
      fs.mkdirSync(point, { recursive: true });
      makeImage(kind, image);
      using _volume = mountImage(kind, image, point);
      usable.push(kind);
    } catch (error) {
      missing.push(`${kind}: ${(error as Error).message.split('\n')[0]}`);
    } finally {
      fs.rmSync(image, { force: true });
    }
  }
  return { usable, missing };
}

export function makeImage(kind: FileSystem, image: string): void {
  const { bytes, make } = kinds[kind];
  fs.writeFileSync(image, '');
  fs.truncateSync(image, bytes);
  const [program, ...args] = make;
  run(program, [...args, image]);
}

/** Mounts the image, which replays its journal. Disposing unmounts it and detaches its loop device. */
export function mountImage(kind: FileSystem, image: string, point: string): Disposable {
  // Copies of a btrfs image have the same id: the kernel would use the one that it has seen before.
  if (kind === 'btrfs') spawnSync('btrfs', ['device', 'scan', '--forget']);
  const options = ['loop', ...kinds[kind].mountOptions].join(',');
  run('mount', ['-t', kind, '-o', options, image, point]);
  return { [Symbol.dispose]: () => unmount(point) };
}

/** Retries, because a child that was killed just now may still use the volume. */
function unmount(point: string): void {
  for (let tries = 0; tries < 20; tries++) {
    if (spawnSync('umount', [point]).status === 0) return;
    spawnSync('sleep', ['0.1']);
  }
  run('umount', ['-l', point]);
}

/** Cleanup at a signal: unmounts everything below the directory, busy or not. */
export function unmountBelow(place: string): void {
  const mounts = fs.readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const points = mounts
    .map((line) => line.split(' ')[1] ?? '')
    .filter((point) => point.startsWith(`${place}/`));
  for (const point of points.reverse()) spawnSync('umount', ['-l', point]);
}

/** Copies the image as it is, without a freeze or flush. */
export function copyImage(from: string, to: string): void {
  run('cp', ['--sparse=always', '--reflink=auto', from, to]);
}

function run(program: string, args: readonly string[]): void {
  const result = spawnSync(program, args, { encoding: 'utf8', timeout: 60_000 });
  if (result.status === 0) return;
  throw new Error(`${program} ${args.join(' ')}: ${result.error?.message ?? result.stderr.trim()}`);
}
