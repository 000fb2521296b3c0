// Runs one soak: actions until the time is over, checks after each action, and final checks without faults. Keeps the state on
// disk only after a violation.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostPaths } from '../../../src/agent/state/paths.js';
import { requireSwept } from '../../kit/assert/host-invariant.js';
import { seeded } from '../../kit/assert/seeded.js';
import { chooseAction } from './soak-actions.js';
import { endFaults } from './soak-repair.js';
import { canRepair, graceMs } from './world/host-files.js';
import type { SoakHost } from './world/soak-host.js';
import { SoakWorld } from './world/soak-world.js';

export interface SoakOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly hosts: number;
  /** Part of the names of the actions to run. */
  readonly only: string;
  readonly mounts: boolean;
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

const progressEveryMs = 10_000;
const collectWithinMs = 60_000;
/** Three retained generations, the last settled one, and the one that was just left. */
const maxGenerations = 5;
const maxResidentMb = 400;
const maxDescriptors = 100;

/** @returns the violations */
export async function soak(options: SoakOptions): Promise<readonly string[]> {
  const { seed, hosts, mounts, print } = options;
  const directory = fs.mkdtempSync(join(tmpdir(), 'writ-soak-'));
  const world = new SoakWorld({ directory, random: seeded(seed), hosts, mounts });
  const stop = (): void => world.processes.killAll();
  process.once('exit', stop);
  const progress = setInterval(() => print(world.log.progress()), progressEveryMs);
  try {
    await act(world, options);
  } catch (error) {
    world.log.violate(`the soak itself: ${error instanceof Error ? error.stack : String(error)}`);
  } finally {
    clearInterval(progress);
    await world.close();
    process.off('exit', stop);
  }
  printResult(world, options);
  return world.log.violations;
}

async function act(world: SoakWorld, { minutes, only, signal }: SoakOptions): Promise<void> {
  const { log } = world;
  await world.open();
  const untilMs = performance.now() + minutes * 60_000;
  while (performance.now() < untilMs && log.violations.length === 0 && !signal.aborted) {
    const action = chooseAction(world, only);
    log.count('actions');
    log.count(`action: ${action.name}`);
    log.event(`-- ${action.name}`);
    await action.act(world);
    await world.healDue();
    for (const host of world.hosts) await requireHost(world, host);
    await sleep(world.random.int(400));
  }
  if (log.violations.length === 0) await end(world);
}

/** Checks a host after each action. */
async function requireHost({ random }: SoakWorld, host: SoakHost): Promise<void> {
  host.check();
  await host.agent.ensure();
  if (!random.once(5)) return;
  const { exitCode, json } = await host.writ('status');
  if (exitCode !== 0) host.violate(`writ status ended with ${exitCode}: ${JSON.stringify(json)}`);
}

/**
 * Ends every fault and checks the final state: the newest release on each host, no left-over files, no growth, a clean
 * exit.
 */
async function end(world: SoakWorld): Promise<void> {
  world.log.event('-- the end');
  await endFaults(world);
  for (const host of world.hosts) {
    await requireCollected(host);
    host.check();
    host.agent.mayEnd = true;
    host.agent.process?.kill('SIGTERM');
    const exitCode = await host.agent.process?.ended;
    if (exitCode !== 0) host.violate(`the agent ended with ${exitCode} at SIGTERM`);
    requireClean(host);
    const verified = canRepair ? await host.writ('verify') : await host.writ('pull');
    if (verified.exitCode !== 0) host.violate(`at the end: verify ${JSON.stringify(verified.json)}`);
    host.check();
  }
  const { log } = world;
  if (log.greatest('resident memory of an agent in MB') > maxResidentMb) log.violate('an agent has grown');
  if (log.greatest('descriptors of an agent') > maxDescriptors) log.violate('an agent leaks descriptors');
}

async function requireCollected(host: SoakHost): Promise<void> {
  const generations = join(host.places.policy, 'generations');
  const startedMs = performance.now();
  while (fs.readdirSync(generations).length > maxGenerations) {
    if (performance.now() - startedMs > collectWithinMs + graceMs) {
      host.violate(
        `${fs.readdirSync(generations).length} generations remain: ${fs.readdirSync(generations)}`,
      );
      return;
    }
    await sleep(200);
  }
}

/** Requires that no file of an unfinished cycle remains, and that each tree belongs to a generation. */
function requireClean(host: SoakHost): void {
  try {
    const paths = hostPaths({
      state: host.places.state,
      policy: host.places.policy,
      run: host.places.run,
      socket: join(host.places.run, 'agent.sock'),
    });
    requireSwept(paths);
    const wanted = fs.readdirSync(paths.generations).flatMap((name) => {
      const generation = join(paths.generations, name);
      return fs.readdirSync(generation).map((bundle) => fs.realpathSync(join(generation, bundle)));
    });
    const trees = fs
      .readdirSync(paths.bundles)
      .flatMap((bundle) =>
        fs.readdirSync(join(paths.bundles, bundle)).map((name) => join(paths.bundles, bundle, name)),
      );
    const unused = trees.map((tree) => fs.realpathSync(tree)).filter((tree) => !wanted.includes(tree));
    assert.deepEqual(unused, [], 'every tree belongs to a generation');
  } catch (error) {
    host.violate(`left over: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function printResult({ directory, log, hosts }: SoakWorld, { seed, hosts: count, print }: SoakOptions): void {
  print(log.progress());
  print('totals:');
  for (const line of log.totals()) print(line);
  if (log.violations.length === 0) {
    for (const host of hosts) host.unmountDisk();
    fs.rmSync(directory, { recursive: true, force: true });
    return;
  }
  print('the last events:');
  for (const line of log.lastEvents) print(line);
  for (const text of log.violations) print(`VIOLATION ${text}`);
  // A private file system ends with the driver, so copy its content.
  for (const host of hosts) host.keepDisk();
  print(`seed ${seed}, ${count} hosts; the state remains in ${directory}`);
}
