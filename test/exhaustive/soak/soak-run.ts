// One soak from its opening to its end: actions until the time is over, what must hold after each, and what must hold
// when all is quiet. Keeps the state of a soak that found a violation, and of no other.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostPaths } from '../../../src/agent/state/paths.js';
import { requireSwept } from '../../kit/assert/host-invariant.js';
import { seeded } from '../../kit/assert/seeded.js';
import { chooseAction } from './soak-actions.js';
import { calm } from './soak-mending.js';
import { canRepair, graceMs } from './world/host-places.js';
import type { SoakHost } from './world/soak-host.js';
import { SoakWorld } from './world/soak-world.js';

export interface SoakOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly hosts: number;
  /** Part of the name of the actions that are done. */
  readonly only: string;
  readonly mounts: boolean;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

const progressEveryMs = 10_000;
const collectWithinMs = 60_000;
/** Kept: three, the last known good, and what is just being left. */
const maxGenerations = 5;
const maxResidentMb = 400;
const maxDescriptors = 100;

/** @returns the violations that were found */
export async function soak(options: SoakOptions): Promise<readonly string[]> {
  const { seed, hosts, mounts, say } = options;
  const directory = fs.mkdtempSync(join(tmpdir(), 'writ-soak-'));
  const world = new SoakWorld({ directory, random: seeded(seed), hosts, mounts });
  const stop = (): void => world.processes.killAll();
  process.once('exit', stop);
  const progress = setInterval(() => say(world.story.progress()), progressEveryMs);
  try {
    await act(world, options);
  } catch (error) {
    world.story.violate(`the soak itself: ${error instanceof Error ? error.stack : String(error)}`);
  } finally {
    clearInterval(progress);
    await world.close();
    process.off('exit', stop);
  }
  notify(world, options);
  return world.story.violations;
}

async function act(world: SoakWorld, { minutes, only, signal }: SoakOptions): Promise<void> {
  const { story } = world;
  await world.open();
  const untilMs = performance.now() + minutes * 60_000;
  while (performance.now() < untilMs && story.violations.length === 0 && !signal.aborted) {
    const action = chooseAction(world, only);
    story.count('actions');
    story.count(`action: ${action.name}`);
    story.event(`-- ${action.name}`);
    await action.act(world);
    await world.healDue();
    for (const host of world.hosts) await requireHost(world, host);
    await sleep(world.random.int(400));
  }
  if (story.violations.length === 0) await end(world);
}

/** What holds after every action. */
async function requireHost({ random }: SoakWorld, host: SoakHost): Promise<void> {
  host.look();
  await host.agent.ensure();
  if (!random.once(5)) return;
  const { exitCode, json } = await host.writ('status');
  if (exitCode !== 0) host.violate(`writ status ended with ${exitCode}: ${JSON.stringify(json)}`);
}

/** Quiet: the newest everywhere, nothing left over, nothing grown, and an end in good order. */
async function end(world: SoakWorld): Promise<void> {
  world.story.event('-- the end');
  await calm(world);
  for (const host of world.hosts) {
    await requireCollected(host);
    host.look();
    host.agent.mayEnd = true;
    host.agent.process?.kill('SIGTERM');
    const exitCode = await host.agent.process?.ended;
    if (exitCode !== 0) host.violate(`the agent ended with ${exitCode} at SIGTERM`);
    requireClean(host);
    const verified = canRepair ? await host.writ('verify') : await host.writ('pull');
    if (verified.exitCode !== 0) host.violate(`at the end: verify ${JSON.stringify(verified.json)}`);
    host.look();
  }
  const { story } = world;
  if (story.greatest('resident memory of an agent in MB') > maxResidentMb)
    story.violate('an agent has grown');
  if (story.greatest('descriptors of an agent') > maxDescriptors) story.violate('an agent leaks descriptors');
}

async function requireCollected(host: SoakHost): Promise<void> {
  const generations = join(host.places.policy, 'generations');
  const startedMs = performance.now();
  while (fs.readdirSync(generations).length > maxGenerations) {
    if (performance.now() - startedMs > collectWithinMs + graceMs) {
      host.violate(
        `${fs.readdirSync(generations).length} generations are kept: ${fs.readdirSync(generations)}`,
      );
      return;
    }
    await sleep(200);
  }
}

/** Nothing of an unfinished cycle, and no tree that no generation has. */
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

function notify({ directory, story, hosts }: SoakWorld, { seed, hosts: count, say }: SoakOptions): void {
  say(story.progress());
  say('totals:');
  for (const line of story.totals()) say(line);
  if (story.violations.length === 0) {
    for (const host of hosts) host.unmountDisk();
    fs.rmSync(directory, { recursive: true, force: true });
    return;
  }
  say('the last events:');
  for (const line of story.lastEvents) say(line);
  for (const text of story.violations) say(`VIOLATION ${text}`);
  // A file system of its own goes with the driver: what lies on it is kept beside.
  for (const host of hosts) host.keepDisk();
  say(`seed ${seed}, ${count} hosts; the state is kept in ${directory}`);
}
