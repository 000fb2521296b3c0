// Cuts the power of a host on a real file system: prepares its image up to the moment before a cycle, runs the cycle in a
// child that copies the image at every moment, mounts each copy, starts a host on it, and checks the invariant.
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/agent/config/load-config.js';
import { openHost } from '../../../src/agent/startup/open-host.js';
import { prepareHost } from '../../../src/agent/startup/prepare-host.js';
import { hostPaths } from '../../../src/agent/state/paths.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { holdInvariant } from '../../kit/assert/host-invariant.js';
import { type Expectation, makeWorld, type ReplayCycle, type ReplayWorld } from '../replay/replay-cycles.js';
import { copyImage, type FileSystem, makeImage, mountImage } from './loop-volume.js';
import { acknowledgedOp, type Cut, type CutOptions } from './power-cut-child.js';

/** A host with its disk in an image of this file system, prepared up to the moment before the cycle. */
export interface CutHost {
  readonly kind: FileSystem;
  readonly cycle: ReplayCycle;
  readonly boot: ReplacedBoot;
  readonly world: ReplayWorld;
  readonly expectation: Expectation;
  /** A directory for images only; the mount point is elsewhere. */
  readonly images: string;
}

/** @param place an empty directory that holds all files of the run */
export async function prepareHostOn(
  kind: FileSystem,
  cycle: ReplayCycle,
  { place, boot }: { readonly place: string; readonly boot: ReplacedBoot },
): Promise<CutHost> {
  const images = join(place, 'images');
  const disk = join(place, 'disk');
  for (const path of [images, disk]) fs.mkdirSync(path, { recursive: true });
  makeImage(kind, baseOf(images));
  using _volume = mountImage(kind, baseOf(images), disk);
  const dir = { path: place, join: (...names: string[]) => join(place, ...names), [Symbol.dispose]: noop };
  const world = makeWorld(dir);
  return { kind, cycle, boot, world, images, expectation: await cycle.prepare(world) };
}

function noop(): void {
  // The caller removes the directory.
}

function baseOf(images: string): string {
  return join(images, 'base.img');
}

export interface ReplacedBoot {
  /** Changes the boot id. */
  next(): void;
}

/** Replaces the boot id in this mount namespace, as a boot after a power cut does. Call once in a namespace. */
export function replaceBoot(place: string): ReplacedBoot {
  const path = join(place, 'boot-id');
  const next = (): void => fs.writeFileSync(path, `${randomUUID()}\n`);
  next();
  const result = spawnSync('mount', ['--bind', path, '/proc/sys/kernel/random/boot_id']);
  if (result.status !== 0) throw new Error(`the boot id could not be replaced: ${result.stderr}`);
  return { next };
}

export interface CutRun {
  readonly cuts: readonly JudgedCut[];
  /** The duration of the cycle: beyond about 25 s the kernel has written data by itself. */
  readonly durationMs: number;
}

export interface JudgedCut extends Cut {
  readonly index: number;
  /** Policies that may be active after the cut. */
  readonly allowed: readonly string[];
}

/** Runs the cycle once on a fresh copy of the prepared image, without a check of the cuts. */
export function runWithCuts(host: CutHost, options: Pick<CutOptions, 'foreign' | 'flushes'>): CutRun {
  const { world, images, kind, cycle } = host;
  const image = join(images, 'run.img');
  copyImage(baseOf(images), image);
  const copies = join(images, 'copies');
  fs.rmSync(copies, { recursive: true, force: true });
  fs.mkdirSync(copies);
  forgetRun(world);
  using _volume = mountImage(kind, image, world.disk);
  const all: CutOptions = {
    ...options,
    configPath: world.configPath,
    command: cycle.argv[0] === 'rollback' ? 'rollback' : 'pull',
    foreignFile: join(world.disk, 'unrelated'),
    image,
    copies,
  };
  const beganAtMs = performance.now();
  const cuts = spawnChild(all);
  const durationMs = performance.now() - beganAtMs;
  return { cuts: withAllowed(host, cuts), durationMs };
}

function spawnChild(options: CutOptions): Cut[] {
  const program = join(import.meta.dirname, 'power-cut-child.js');
  const result = spawnSync(process.execPath, [program, JSON.stringify(options)], {
    cwd: '/',
    encoding: 'utf8',
    maxBuffer: 10_000_000,
    timeout: 300_000,
    killSignal: 'SIGKILL',
  });
  if (result.status !== 0) throw new Error(`the cycle did not end well: ${result.stdout}${result.stderr}`);
  return JSON.parse(result.stdout) as Cut[];
}

/** Allows the old policy before the rename of `current`, the new one after its flush, and either between them. */
function withAllowed({ world, expectation: { from, to } }: CutHost, cuts: readonly Cut[]): JudgedCut[] {
  const paths = hostPaths(loadConfig(world.configPath).config);
  const renamed = cuts.findLastIndex(({ op, path }) => op.endsWith(':rename') && path === paths.current);
  const flushed = cuts.findIndex(({ path }, at) => at > renamed && path === paths.policy);
  if (renamed < 0 || flushed < 0 || cuts.at(-1)?.op !== acknowledgedOp)
    throw new Error('the cycle swaps, flushes its swap, and reports it');
  return cuts.map((cut, index) => {
    const allowed = index < renamed ? [from] : index < flushed ? [from, to] : [to];
    return { ...cut, index, allowed };
  });
}

/** @returns the first of each group of cuts with equal disk content and equal allowed policies */
export function differentCuts(cuts: readonly JudgedCut[]): JudgedCut[] {
  const seen = new Set<string>();
  return cuts.filter(({ copy, allowed }) => {
    const key = `${copy} ${allowed.join()}`;
    return seen.size < seen.add(key).size;
  });
}

/**
 * Mounts the copy as the next boot does, starts a host, and runs a cycle without faults.
 * @returns the violation; undefined when the invariant holds
 */
export async function judgeCut(host: CutHost, cut: JudgedCut): Promise<string | undefined> {
  const { world, kind, images, expectation, boot } = host;
  // A copy may be checked twice: with the policies allowed before a flush that changed nothing, and with those after
  // it.
  const image = join(images, 'judged.img');
  try {
    copyImage(cut.copy, image);
    forgetRun(world);
    boot.next();
    using _volume = mountImage(kind, image, world.disk);
    await recovers(world, expectation, cut.allowed);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function recovers(
  world: ReplayWorld,
  { policies, ends, succeeds }: Expectation,
  allowed: readonly string[],
): Promise<void> {
  const { config } = loadConfig(world.configPath);
  const paths = hostPaths(config);
  const options = { clock: systemClock, log: silentLog(), version: 'test' };
  await holdInvariant(paths, {
    policies,
    allowed,
    ends,
    open: () => {
      prepareHost(paths, createDurableFs());
      return openHost(config, options);
    },
    ...(succeeds === undefined ? {} : { succeeds }),
  });
}

/** Empties /run, which is in memory, as a power cut does. */
function forgetRun({ configPath }: ReplayWorld): void {
  fs.rmSync(loadConfig(configPath).config.run, { recursive: true, force: true });
}
