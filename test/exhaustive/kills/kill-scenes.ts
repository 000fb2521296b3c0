// The hosts on which processes are killed: prepared once up to the moment before a cycle, and copied for every kill. The
// cycles are those of the replay. The repository is shared, because a host only reads it.
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadConfig } from '../../../src/agent/config/load-config.js';
import { openLedger } from '../../../src/agent/state/ledger-file.js';
import { type HostPaths, hostPaths } from '../../../src/agent/state/paths.js';
import type { AgentConfig } from '../../../src/core/config/config.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type Expectation, makeWorld, type ReplayCycle, replayCycles } from '../replay/replay-cycles.js';

export interface KillCase {
  readonly name: string;
  readonly cycle: ReplayCycle;
  /** A standalone run, or an agent that receives a request over its socket. */
  readonly by: 'command' | 'agent';
}

export const killCases: readonly KillCase[] = [
  { name: 'first start', cycle: cycleOf('first start'), by: 'command' },
  { name: 'update', cycle: cycleOf('update'), by: 'command' },
  { name: 'rollback', cycle: cycleOf('rollback'), by: 'command' },
  { name: 'update by a running agent', cycle: cycleOf('update'), by: 'agent' },
];

function cycleOf(name: string): ReplayCycle {
  const found = replayCycles.find((one) => one.name === name);
  if (found === undefined) throw new RangeError(`no cycle is called ${name}`);
  return found;
}

export interface Scene extends Disposable {
  readonly case: KillCase;
  readonly expectation: Expectation;
  /** Copies the host as it was before the cycle. */
  place(): Promise<Place>;
}

export interface Place extends Disposable {
  /** Real path of the directory with disk/ and run/ of this host only. */
  readonly root: string;
  readonly configPath: string;
  readonly config: AgentConfig;
  readonly paths: HostPaths;
}

export async function openScene(one: KillCase): Promise<Scene> {
  // A kill loses nothing of the disk cache, so flushes would only cost time. test/exhaustive/power covers power cuts.
  const dir = tempDir(memory());
  try {
    const world = makeWorld(dir);
    const expectation = await one.cycle.prepare(world);
    ageBakes(join(world.disk, 'lib', 'writ', 'ledger.json'));
    let places = 0;
    const place = (): Promise<Place> => {
      places += 1;
      return copyPlace(fs.realpathSync(dir.path), join(fs.realpathSync(dir.path), `place-${places}`));
    };
    return { case: one, expectation, place, [Symbol.dispose]: () => dir[Symbol.dispose]() };
  } catch (error) {
    dir[Symbol.dispose]();
    throw error;
  }
}

/**
 * Makes the bake of the release older. The first check of a bake time after half a minute writes the ledger, so a run
 * right after the preparation would have one write fewer than a later one, and calls are compared by their count.
 */
function ageBakes(path: string): void {
  const file = openLedger(path, createDurableFs());
  const aged = Object.entries(file.read().bakes ?? {}).map(([bundle, { seenAtMs, startedAtMs, ...bake }]) => [
    bundle,
    { ...bake, startedAtMs: startedAtMs - agedMs, seenAtMs: seenAtMs - agedMs },
  ]);
  if (aged.length > 0) setLedger(file, { bakes: Object.fromEntries(aged) });
}

const agedMs = 3_600_000;
/** Longer than all runs of a scene, so that no run settles the release. */
const bake = { for: '1d' };

const run = promisify(execFile);

async function copyPlace(from: string, root: string): Promise<Place> {
  fs.mkdirSync(root);
  await run('cp', ['-a', join(from, 'disk'), root]);
  const runDirectory = join(root, 'run');
  // /run survives a dead process, with the result of the last run.
  if (fs.existsSync(join(from, 'run'))) await run('cp', ['-a', join(from, 'run'), root]);
  const base = JSON.parse(fs.readFileSync(join(from, 'agent.yaml'), 'utf8')) as Record<string, unknown>;
  const configPath = join(root, 'agent.yaml');
  // The agent polls only on request.
  const moved = { state: join(root, 'disk', 'lib', 'writ'), run: runDirectory, poll: { every: '24h' } };
  const bundles = (base['bundles'] as readonly object[]).map((one) => ({ ...one, bake }));
  fs.writeFileSync(configPath, JSON.stringify({ ...base, ...moved, bundles }));
  const { config } = loadConfig(configPath);
  return {
    root,
    configPath,
    config,
    paths: hostPaths(config),
    [Symbol.dispose]: () => fs.rmSync(root, { recursive: true, force: true }),
  };
}
