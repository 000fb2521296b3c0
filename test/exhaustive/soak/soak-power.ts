// What the power, a bad network and the clock do to a fleet in a soak: kills at any moment, and a world that goes wrong
// for a while.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { wayFaults } from './world/faulty-proxy.js';
import type { SoakHost } from './world/soak-host.js';
import { pick, publish } from './world/soak-publisher.js';
import { bundleNames } from './world/soak-repository.js';
import type { SoakWorld } from './world/soak-world.js';

/** About how long loader, workers and commit take. */
const longestMoveMs = 120;
const minuteMs = 60_000;
const dayMs = 1440 * minuteMs;

/** At a moment of a measured pull, rollback, repair or start that is as likely as any other one. */
export async function killAgent(world: SoakWorld, host: SoakHost): Promise<void> {
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
  const asked = host.commands.begin(...command);
  const when = await killTime(world, host);
  host.agent.kill();
  story.event(`${host.name}: killed the agent ${when} of ${command.join(' ')}`);
  const run = await asked.ended;
  if (command[0] === 'pull') host.acknowledged.note(run);
  if (command[0] === 'rollback') host.acknowledged.rollbackIsOver();
  host.look();
  if (random.once(3)) await pullAlone(world, host);
  if (random.once(3)) await killInStart(world, host);
  await host.agent.ensure();
  if (command[0] === 'rollback') await host.writ('resume');
}

/** Half of the times anywhere in a pull, the others behind the swap, which is a small part of it. */
async function killTime({ random }: SoakWorld, host: SoakHost): Promise<string> {
  const usualMs = Math.ceil(host.acknowledged.usualPullMs() * 1.1);
  const inMoveMs = random.int(longestMoveMs);
  const anywhereMs = random.int(usualMs + 1);
  if (random.once(2) && (await host.agent.untilSwap(usualMs + 2000))) {
    await sleep(inMoveMs);
    return `${inMoveMs} ms behind the swap`;
  }
  await sleep(anywhereMs);
  return `${anywhereMs} ms into it`;
}

/** Nobody is there: the command does it itself, and may be killed itself. */
async function pullAlone(world: SoakWorld, host: SoakHost): Promise<void> {
  const { random, story } = world;
  const alone = host.commands.beginProgram('pull');
  if (random.once(2)) {
    const afterMs = random.int(Math.ceil(host.acknowledged.usualPullMs() * 2) + 1);
    await Promise.race([sleep(afterMs), alone.ended]);
    if (alone.process.isRunning()) {
      alone.process.kill('SIGKILL');
      host.acknowledged.noteUnrest();
      story.count('kills');
      story.count('kills of a pull');
      story.event(`${host.name}: killed a pull without an agent after ${afterMs} ms`);
    }
  }
  host.acknowledged.note(await alone.ended);
  host.look();
}

async function killInStart(world: SoakWorld, host: SoakHost): Promise<void> {
  const starting = host.agent.start();
  const afterMs = world.random.int(1200);
  await sleep(afterMs);
  host.agent.kill();
  world.story.event(`${host.name}: killed the agent ${afterMs} ms into its start`);
  await starting;
  host.look();
}

export async function killServer(world: SoakWorld): Promise<void> {
  await world.killServer();
  for (const host of world.hosts) host.faults.add('way');
  await sleep(world.random.int(3000));
  if (world.random.once(2)) await pick(world).writ('pull');
  await world.startServer();
  for (const host of world.hosts) host.faults.delete('way');
}

export async function spoilWay(world: SoakWorld): Promise<void> {
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

export async function stepClock(world: SoakWorld): Promise<void> {
  const host = pick(world);
  const size = world.random.pick([10_000, 61 * minuteMs, 2 * dayMs, 40 * dayMs, 4000 * dayMs]);
  const shiftMs = world.random.once(2) ? size : -size;
  fs.writeFileSync(host.places.clockFile, String(shiftMs));
  world.story.event(`${host.name}: the clock steps by ${shiftMs / 1000} s`);
  world.breakFor(host, 'clock', 500 + world.random.int(8000), () =>
    fs.writeFileSync(host.places.clockFile, '0'),
  );
  if (world.random.once(2)) await publish(world, world.random.pick(bundleNames), 'good');
  if (world.random.once(2)) await host.writ('pull');
  if (world.random.once(3)) await killAgent(world, host);
}

export async function fillDisk(world: SoakWorld): Promise<void> {
  const { random, story } = world;
  const host = world.hosts.filter((one) => one.ownDisk && !one.faults.has('disk'))[0];
  if (host === undefined) return story.count('actions left out: no disk to fill');
  const filler = join(host.places.disk, 'filler');
  const what = random.once(3) ? 'inodes' : 'bytes';
  if (what === 'bytes') fillBytes(host.places.disk, filler, random.int(1_500_000));
  else fillInodes(host.places.disk, filler, random.int(120));
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
