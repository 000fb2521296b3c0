// What a soak does, each a seeded choice of the moment: what a publisher, an operator, a bad network, a bad disk and the
// power do to a fleet. Each action says at once what must hold after it; `calm` says what must hold when all is well.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { VerifyResult } from '../../src/core/verify-report.js';
import { wayFaults } from './faulty-proxy.js';
import { appendKnown } from './known-releases.js';
import {
  damageActiveTree,
  damageArchives,
  damageCurrent,
  damageGeneration,
  damageKeptTree,
  damageStateFile,
  damageTrust,
} from './soak-damage.js';
import { type CommandRun, canRepair, type SoakHost } from './soak-host.js';
import { type BundleName, bundleNames } from './soak-repository.js';
import type { SoakWorld } from './soak-world.js';

interface Action {
  readonly name: string;
  readonly weight: number;
  readonly act: (world: SoakWorld) => Promise<void>;
}

/** From a fault on the active policy to its repair: the scrub's interval, a look, a download and a swap. */
const repairWithinMs = 60_000;
const convergeWithinMs = 60_000;
/** About how long loader, workers and commit take. */
const longestMoveMs = 120;
const repairCommand = canRepair ? ['verify', '--repair'] : ['pull', '--force'];
const minuteMs = 60_000;
const dayMs = 1440 * minuteMs;

const actions: readonly Action[] = [
  { name: 'publish', weight: 8, act: (world) => publish(world, world.random.pick(bundleNames), 'good') },
  { name: 'publish both bundles', weight: 4, act: publishBoth },
  {
    name: 'publish what a check refuses',
    weight: 2,
    act: (world) => publish(world, world.random.pick(bundleNames), 'refused'),
  },
  { name: 'publish what a worker refuses', weight: 3, act: publishNacked },
  { name: 'withdraw', weight: 3, act: withdraw },
  { name: 'rotate the root', weight: 2, act: rotate },
  {
    name: 'collect in the repository',
    weight: 1,
    act: async (world) => world.story.count('files collected', await world.repository.collect()),
  },
  { name: 'pull', weight: 4, act: async (world) => void (await pick(world).writ('pull')) },
  { name: 'pull --force', weight: 3, act: async (world) => void (await pick(world).writ('pull', '--force')) },
  { name: 'roll back and resume', weight: 3, act: (world) => rollBack(world, pick(world)) },
  { name: 'kill the agent', weight: 10, act: (world) => killAgent(world, pick(world)) },
  { name: 'kill the server', weight: 2, act: killServer },
  {
    name: 'kill a worker',
    weight: 2,
    act: (world) => pick(world).killUser(world.random.pick(['native', 'daemon'])),
  },
  { name: 'spoil the way', weight: 4, act: spoilWay },
  { name: 'step the clock', weight: 3, act: stepClock },
  { name: 'fill the disk', weight: 4, act: fillDisk },
  { name: 'damage the active policy', weight: 5, act: damagePolicy },
  { name: 'damage what is kept', weight: 4, act: damageKept },
  {
    name: 'verify --repair',
    weight: 2,
    act: async (world) => void (await pick(world).writ(...repairCommand)),
  },
  { name: 'calm', weight: 3, act: calm },
];

/**
 * @param only part of the name of what may be chosen
 * @returns an action by its weight
 */
export function chooseAction(world: SoakWorld, only: string): Action {
  const some = actions.filter(({ name }) => name.includes(only));
  const total = some.reduce((sum, { weight }) => sum + weight, 0);
  let left = world.random.int(total);
  for (const action of some) {
    left -= action.weight;
    if (left < 0) return action;
  }
  throw new RangeError(`no action is called ${only}`);
}

function pick(world: SoakWorld): SoakHost {
  return world.random.pick(world.hosts);
}

// The publisher

async function publish(
  world: SoakWorld,
  bundle: BundleName,
  kind: 'good' | 'refused' | 'nacked',
): Promise<void> {
  const serial = await world.repository.publish(bundle, kind);
  world.story.count('publishes');
  world.story.event(`published ${bundle} ${serial}, ${kind}`);
}

async function publishBoth(world: SoakWorld): Promise<void> {
  for (const bundle of bundleNames) await publish(world, bundle, 'good');
}

async function publishNacked(world: SoakWorld): Promise<void> {
  for (const host of world.hosts) host.noteUnrest();
  if (world.random.once(2)) await publish(world, 'edge', 'good');
  await publish(world, 'access', 'nacked');
  if (world.random.once(2)) await pick(world).writ('pull');
}

async function withdraw(world: SoakWorld): Promise<void> {
  const bundle = world.random.pick(bundleNames);
  const moved = await world.repository.withdraw(bundle);
  if (moved === undefined) return;
  world.story.count('withdrawals');
  world.story.event(`withdrew ${bundle} ${moved.from}, back to ${moved.to}`);
}

async function rotate(world: SoakWorld): Promise<void> {
  const role = await world.repository.rotate();
  world.story.count('root rotations');
  world.story.event(`rotated the root, new keys: ${role}`);
}

// The operator

async function rollBack(world: SoakWorld, host: SoakHost): Promise<void> {
  host.expectRollback();
  await host.writ('rollback', '--reason', 'soak');
  host.rollbackIsOver();
  if (world.random.once(2)) await publish(world, world.random.pick(bundleNames), 'good');
  await host.writ('pull');
  await host.writ('resume');
  await host.writ('pull');
}

// The power

/** At a moment of a measured pull, rollback, repair or start that is as likely as any other one. */
async function killAgent(world: SoakWorld, host: SoakHost): Promise<void> {
  const { random, story } = world;
  if (!random.once(4)) await publish(world, random.pick(bundleNames), 'good');
  if (random.once(3)) await publish(world, random.pick(bundleNames), 'good');
  const command = random.pick([
    ['pull'],
    ['pull'],
    ['pull', '--force'],
    ['rollback'],
    ['verify', '--repair'],
  ]);
  if (command[0] === 'rollback') host.expectRollback();
  const asked = host.begin(...command);
  const when = await killTime(world, host);
  host.killAgent();
  story.event(`${host.name}: killed the agent ${when} of ${command.join(' ')}`);
  const run = await asked.ended;
  if (command[0] === 'pull') host.acknowledge(run);
  if (command[0] === 'rollback') host.rollbackIsOver();
  host.look();
  if (random.once(3)) await pullAlone(world, host);
  if (random.once(3)) await killInStart(world, host);
  await host.ensureAgent();
  if (command[0] === 'rollback') await host.writ('resume');
}

/** Half of the times anywhere in a pull, the others behind the swap, which is a small part of it. */
async function killTime({ random }: SoakWorld, host: SoakHost): Promise<string> {
  const usualMs = Math.ceil(host.usualPullMs() * 1.1);
  const inMoveMs = random.int(longestMoveMs);
  const anywhereMs = random.int(usualMs + 1);
  if (random.once(2) && (await host.untilSwap(usualMs + 2000))) {
    await sleep(inMoveMs);
    return `${inMoveMs} ms behind the swap`;
  }
  await sleep(anywhereMs);
  return `${anywhereMs} ms into it`;
}

/** Nobody is there: the command does it itself, and may be killed itself. */
async function pullAlone(world: SoakWorld, host: SoakHost): Promise<void> {
  const { random, story } = world;
  const alone = host.beginProgram('pull');
  if (random.once(2)) {
    const afterMs = random.int(Math.ceil(host.usualPullMs() * 2) + 1);
    await Promise.race([sleep(afterMs), alone.ended]);
    if (alone.process.isRunning()) {
      alone.process.kill('SIGKILL');
      host.noteUnrest();
      story.count('kills');
      story.count('kills of a pull');
      story.event(`${host.name}: killed a pull without an agent after ${afterMs} ms`);
    }
  }
  host.acknowledge(await alone.ended);
  host.look();
}

async function killInStart(world: SoakWorld, host: SoakHost): Promise<void> {
  const starting = host.startAgent();
  const afterMs = world.random.int(1200);
  await sleep(afterMs);
  host.killAgent();
  world.story.event(`${host.name}: killed the agent ${afterMs} ms into its start`);
  await starting;
  host.look();
}

async function killServer(world: SoakWorld): Promise<void> {
  await world.killServer();
  for (const host of world.hosts) host.faults.add('way');
  await sleep(world.random.int(3000));
  if (world.random.once(2)) await pick(world).writ('pull');
  await world.startServer();
  for (const host of world.hosts) host.faults.delete('way');
}

// The world around

async function spoilWay(world: SoakWorld): Promise<void> {
  const host = pick(world);
  const fault = world.random.pick(wayFaults);
  const forMs = 500 + world.random.int(6000);
  host.proxy.spoil(fault);
  world.story.count(`way: ${fault}`);
  world.story.event(`${host.name}: the way will ${fault} for ${forMs} ms`);
  world.breakFor(host, 'way', forMs, () => host.proxy.spoil(undefined));
  if (!world.random.once(3)) await publish(world, world.random.pick(bundleNames), 'good');
  if (world.random.once(2)) await host.writ('pull');
}

async function stepClock(world: SoakWorld): Promise<void> {
  const host = pick(world);
  const size = world.random.pick([10_000, 61 * minuteMs, 2 * dayMs, 40 * dayMs, 4000 * dayMs]);
  const shiftMs = world.random.once(2) ? size : -size;
  fs.writeFileSync(host.clockFile, String(shiftMs));
  world.story.event(`${host.name}: the clock steps by ${shiftMs / 1000} s`);
  world.breakFor(host, 'clock', 500 + world.random.int(8000), () => fs.writeFileSync(host.clockFile, '0'));
  if (world.random.once(2)) await publish(world, world.random.pick(bundleNames), 'good');
  if (world.random.once(2)) await host.writ('pull');
  if (world.random.once(3)) await killAgent(world, host);
}

async function fillDisk(world: SoakWorld): Promise<void> {
  const { random, story } = world;
  const host = world.hosts.filter((one) => one.ownDisk && !one.faults.has('disk'))[0];
  if (host === undefined) return story.count('actions left out: no disk to fill');
  const filler = join(host.disk, 'filler');
  const what = random.once(3) ? 'inodes' : 'bytes';
  if (what === 'bytes') fillBytes(host.disk, filler, random.int(1_500_000));
  else fillInodes(host.disk, filler, random.int(120));
  story.count(`disk full of ${what}`);
  story.event(`${host.name}: the disk is full of ${what}`);
  world.breakFor(host, 'disk', 500 + random.int(8000), () =>
    fs.rmSync(filler, { recursive: true, force: true }),
  );
  await publish(world, random.pick(bundleNames), 'good');
  if (!random.once(3)) await host.writ('pull');
  if (random.once(3)) await killAgent(world, host);
}

function fillBytes(disk: string, filler: string, left: number): void {
  const { bavail, bsize } = fs.statfsSync(disk);
  const fd = fs.openSync(filler, 'w');
  const piece = Buffer.alloc(1_000_000, 1);
  try {
    for (let rest = bavail * bsize - left; rest > 0; rest -= piece.length) {
      fs.writeSync(fd, piece, 0, Math.min(piece.length, rest));
    }
  } catch {
    // Somebody else took the rest: it is full.
  } finally {
    fs.closeSync(fd);
  }
}

function fillInodes(disk: string, filler: string, left: number): void {
  fs.mkdirSync(filler);
  try {
    for (let rest = fs.statfsSync(disk).ffree - 1 - left; rest > 0; rest--)
      fs.writeFileSync(join(filler, String(rest)), '');
  } catch {
    // As above.
  }
}

// The disk

async function damagePolicy(world: SoakWorld): Promise<void> {
  if (!canRepair) return;
  const { random, story, knownFile } = world;
  const host = pick(world);
  host.faults.add('damage');
  if (host.faults.has('way') || host.faults.has('disk')) host.forgetAcknowledged();
  const damage = random.pick([
    damageActiveTree,
    damageActiveTree,
    damageActiveTree,
    damageGeneration,
    damageCurrent,
  ]);
  story.event(`${host.name}: damaged: ${damage(host, knownFile, random)}`);
  story.count('damages of the active policy');
  const how = random.pick(['scrub', 'verify', 'force', 'restart'] as const);
  if (how === 'verify') await host.writ(...repairCommand);
  if (how === 'force') await host.writ('pull', '--force');
  if (how === 'restart') {
    host.killAgent();
    await host.ensureAgent();
  }
  await world.healAll();
  await requireMended(world, host, how);
  host.faults.delete('damage');
}

async function requireMended(world: SoakWorld, host: SoakHost, how: string): Promise<void> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < repairWithinMs) {
    const { generation, bundles, violations } = host.read();
    const isWhole = generation !== undefined && violations.length === 0 && !host.known.isTainted(generation);
    if (isWhole && bundles.length === bundleNames.length && bundles.every((one) => !one.tainted)) {
      appendKnown(world.knownFile, { type: 'link', policy: host.policy, state: 'whole' });
      const tookMs = performance.now() - startedMs;
      world.story.measure(`milliseconds to a repair by ${how}`, tookMs);
      world.story.event(`${host.name}: mended by ${how} after ${Math.round(tookMs)} ms`);
      return;
    }
    await sleep(100);
  }
  const verified = await host.writ('verify');
  world.story.violate(
    `${host.name}: damage was not mended by ${how}: ${JSON.stringify(verified.json)?.slice(0, 3000)}`,
  );
}

async function damageKept(world: SoakWorld): Promise<void> {
  const { random, story, knownFile } = world;
  const host = pick(world);
  const what = random.pick(['archives', 'trust', 'state', 'tree'] as const);
  const restart = random.once(3);
  if (restart) host.killAgent();
  if (restart) await host.agent?.ended;
  const done = {
    archives: () => damageArchives(host, random),
    trust: () => damageTrust(host, random),
    state: () => damageStateFile(host, random),
    tree: () => damageKeptTree(host, knownFile, random),
  }[what]();
  story.count(`damages of ${what}`);
  story.event(`${host.name}: damaged: ${done}`);
  host.noteUnrest();
  await host.ensureAgent();
  if (random.once(2)) await publish(world, random.pick(bundleNames), 'good');
  await host.writ('pull');
}

// When all is well

/** Nothing is wrong any more: every host comes to the newest release by itself, says so, and is whole. */
export async function calm(world: SoakWorld): Promise<void> {
  await world.healAll();
  for (const bundle of bundleNames) {
    if (world.repository.head(bundle)?.kind !== 'good') await publish(world, bundle, 'good');
  }
  await Promise.all(world.hosts.map((host) => calmHost(world, host)));
}

async function calmHost(world: SoakWorld, host: SoakHost): Promise<void> {
  await host.ensureAgent();
  await host.writ('resume');
  await requireNewest(world, host);
  await requireZero(host, ['pull']);
  if (!canRepair) return;
  const repaired = await host.writ(...repairCommand);
  if (repaired.exitCode !== 0 && isActiveWhole(repaired)) {
    // What is signed for an old release cannot be had again once it was lost: the next release makes a new backup.
    world.story.count('backups that could not be mended');
    await publishBoth(world);
    await requireNewest(world, host);
    await host.writ('pull');
  }
  await requireZero(host, repairCommand);
  await requireZero(host, ['verify']);
}

async function requireNewest(world: SoakWorld, host: SoakHost): Promise<void> {
  const startedMs = performance.now();
  while (!isNewest(world, host)) {
    if (performance.now() - startedMs > convergeWithinMs) {
      const { json } = await host.writ('pull');
      host.violate(`it did not come to the newest release: ${JSON.stringify(json)?.slice(0, 3000)}`);
      return;
    }
    await sleep(100);
  }
  world.story.measure('milliseconds to the newest release in calm', performance.now() - startedMs);
}

function isActiveWhole({ json }: CommandRun): boolean {
  const { generations = [] } = (json ?? {}) as Partial<VerifyResult>;
  return generations.some(({ role, damage }) => role === 'active' && damage.length === 0);
}

/** A worker that was killed a moment ago may have to be told first. */
async function requireZero(host: SoakHost, command: readonly string[]): Promise<void> {
  let last = '';
  for (let tries = 0; tries < 8; tries++) {
    const { exitCode, json } = await host.writ(...command);
    if (exitCode === 0) return;
    last = `${exitCode} ${JSON.stringify(json)?.slice(0, 3000)}`;
    await sleep(1000);
  }
  host.violate(`writ ${command.join(' ')} when all is well: ${last}`);
}

export function isNewest(world: SoakWorld, host: SoakHost): boolean {
  const { bundles, violations } = host.read();
  if (violations.length > 0 || bundles.length !== bundleNames.length) return false;
  return bundles.every(
    (one) => !one.tainted && one.serial === world.repository.head(one.bundle as BundleName)?.serial,
  );
}
