// Runs an archive through fetch and stage as a cycle does, in a jail with sentinel files around it. Asserts that nothing
// outside the jail changed.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { fetchArchive } from '../../../src/agent/staging/fetch-archive.js';
import { type StageBundleOptions, stageBundle } from '../../../src/agent/staging/stage-bundle.js';
import type { StagedBundle } from '../../../src/agent/staging/staged-bundle.js';
import { type ArchiveLimits, defaultArchiveLimits } from '../../../src/core/limits.js';
import type { ReleaseInfo } from '../../../src/core/release/release.js';
import { createDurableFs, type DurableFs } from '../../../src/platform/disk/durable-fs.js';
import type { SignedTarget } from '../../../src/trust/signed-target.js';
import { type TempDir, tempDir } from '../disk/temp-dir.js';
import { pack, signedTarget } from '../repository/archive-builder.js';
import { memorySource } from '../repository/memory-source.js';

export interface Jail {
  readonly dir: TempDir;
  /** The private directory of a cycle. */
  readonly staging: string;
  readonly fs: DurableFs;
  [Symbol.dispose](): void;
}

/** @returns a staging directory between files that an escape would change */
export function jail(durableFs: DurableFs = createDurableFs()): Jail {
  const dir = tempDir();
  const staging = dir.join('state', 'staging', 'c-0001');
  fs.mkdirSync(staging, { recursive: true, mode: 0o700 });
  for (const place of ['', 'state', 'state/staging', 'policy']) {
    fs.mkdirSync(dir.join(place), { recursive: true });
    fs.writeFileSync(dir.join(place, 'victim'), `secret of ${place}`);
  }
  return { dir, staging, fs: durableFs, [Symbol.dispose]: () => dir[Symbol.dispose]() };
}

/** @returns a line for each path below `root` with mode, links, mtime and content; paths in `without` are left out */
export function snapshot(root: string, { without }: { without?: string } = {}): string[] {
  return fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((name) => join(root, name))
    .filter((path) => without === undefined || !`${path}/`.startsWith(`${without}/`))
    .sort()
    .map((path) => describePath(path));
}

function describePath(path: string): string {
  const stats = fs.lstatSync(path);
  const content = stats.isFile() ? fs.readFileSync(path, 'hex') : '';
  // The mtime of a directory changes when staging is created; its names are in the list themselves.
  const time = stats.isDirectory() ? '' : stats.mtimeMs;
  return [path, stats.mode.toString(8), stats.nlink, time, content].join(' ');
}

export interface StageInput {
  readonly tar: Buffer;
  /** The manifest of the signed digest. */
  readonly manifest: Buffer;
  /** The packed archive; by default the tar with Brotli. */
  readonly archive?: Buffer;
  readonly limits?: Partial<ArchiveLimits>;
  readonly target?: Partial<SignedTarget>;
  readonly release?: Partial<ReleaseInfo>;
  readonly options?: Partial<Pick<StageBundleOptions, 'mode' | 'groupId' | 'mtimeSeconds' | 'signal'>>;
}

/** Fetches the archive and stages it into `<staging>/tree`. */
export async function stage({ staging, fs: durableFs }: Jail, input: StageInput): Promise<StagedBundle> {
  const bytes = input.archive ?? pack(input.tar);
  const { target: targetChanges = {}, release = {} } = input;
  const target = signedTarget(bytes, input.manifest, { target: targetChanges, release });
  const limits = { ...defaultArchiveLimits, ...input.limits };
  const common = { fs: durableFs, limits };
  const client = memorySource(bytes);
  const archive = await fetchArchive({ ...common, client, target, directory: staging });
  return stageBundle({
    ...common,
    archive,
    directory: join(staging, 'tree'),
    mode: 0o644,
    mtimeSeconds: 1_800_000_000,
    ...input.options,
  });
}

/** Asserts that staging fails with one of these codes and leaves only the archive. */
export async function assertRefused(input: StageInput, code: string | readonly string[]): Promise<void> {
  using place = jail();
  const before = snapshot(place.dir.path, { without: place.staging });
  const codes = typeof code === 'string' ? [code] : code;
  await assert.rejects(stage(place, input), (error: { code?: string; message?: string }) => {
    assert.ok(
      codes.includes(error.code ?? ''),
      `expected ${codes.join(' or ')}, got ${error.code}: ${error.message}`,
    );
    return true;
  });
  assert.deepEqual(snapshot(place.dir.path, { without: place.staging }), before, 'something outside changed');
  assert.deepEqual(
    fs.readdirSync(place.staging).filter((name) => name !== 'archive'),
    [],
    'staging is not empty',
  );
}
