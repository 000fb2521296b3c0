// The disks of the crash matrix: those that cycles begin with, each prepared once, and copies for the cases. Owns what a
// killed process leaves behind; runs no process.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/agent/config/load-config.js';
import { type HostPaths, hostPaths } from '../../../src/agent/state/paths.js';
import type { AgentConfig } from '../../../src/core/config/config.js';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { configAt, makeWorld } from '../replay/replay-cycles.js';
import type { MatrixCycle } from './matrix-cycles.js';
import type { MatrixExpectation } from './matrix-hosts.js';
import { type MatrixHost, matrixWorker } from './matrix-process.js';

/** The disks that several cycles begin with, each prepared once. */
export interface PreparedDisks extends Disposable {
  of(cycle: MatrixCycle): Promise<PreparedDisk>;
}

interface PreparedDisk {
  readonly template: Template;
  readonly expectation: MatrixExpectation;
}

export function openDisks(): PreparedDisks {
  const known = new Map<MatrixCycle['prepare'], Promise<PreparedDisk>>();
  const directories: Disposable[] = [];
  const prepare = async (cycle: MatrixCycle): Promise<PreparedDisk> => {
    const dir = tempDir(memory());
    directories.push(dir);
    const world = makeWorld(dir);
    const expectation = await cycle.prepare(world);
    const { config } = loadConfig(world.configPath);
    const used = linked(hostPaths(config));
    return {
      template: { config, disk: world.disk, run: config.run, ...(used === undefined ? {} : { used }) },
      expectation,
    };
  };
  return {
    of: (cycle) => {
      const found = known.get(cycle.prepare) ?? prepare(cycle);
      known.set(cycle.prepare, found);
      return found;
    },
    [Symbol.dispose]: () => {
      for (const one of directories) one[Symbol.dispose]();
    },
  };
}

export interface Template {
  readonly config: AgentConfig;
  readonly disk: string;
  readonly run: string;
  /** The generation that the worker uses, from any notification; absent before the first. */
  readonly used?: number;
}

export interface Place extends Disposable {
  readonly cycle: MatrixCycle;
  readonly host: MatrixHost;
  readonly paths: HostPaths;
  /** This copy as the template of further copies. */
  readonly template: Template;
}

/** Copies the disk, and the files that a killed process leaves in the run directory. */
export function copy(cycle: MatrixCycle, { config, disk, run, ...rest }: Template): Place {
  const path = fs.mkdtempSync(join(memory(), 'writ-matrix-'));
  const keep = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true } as const;
  fs.cpSync(disk, join(path, 'disk'), keep);
  if (fs.existsSync(run)) copyRun(run, join(path, 'run'));
  const at = configAt(config, join(path, 'disk'), join(path, 'run'));
  return {
    cycle,
    template: { ...rest, config: at.config, disk: join(path, 'disk'), run: join(path, 'run') },
    host: { config: at.config, worker: matrixWorker(cycle.worker ?? 'confirms') },
    paths: at.paths,
    [Symbol.dispose]: () => fs.rmSync(path, { recursive: true, force: true }),
  };
}

/**
 * Copies the run directory. A hard link replaces each socket, because a socket cannot be copied; no process listens on
 * it.
 */
function copyRun(from: string, to: string): void {
  for (const one of ['.', ...fs.readdirSync(from, { recursive: true, encoding: 'utf8' })]) {
    const [source, place] = [join(from, one), join(to, one)];
    const stat = fs.lstatSync(source);
    if (stat.isDirectory()) fs.mkdirSync(place, { mode: stat.mode });
    else if (stat.isSocket()) fs.linkSync(source, place);
    else fs.copyFileSync(source, place);
  }
}

/** @returns the generation that `current` leads to */
export function linked({ current }: Pick<HostPaths, 'current'>): number | undefined {
  if (fs.lstatSync(current, { throwIfNoEntry: false }) === undefined) return undefined;
  return Number(fs.readlinkSync(current).slice('generations/'.length));
}
