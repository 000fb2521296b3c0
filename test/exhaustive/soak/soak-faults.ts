// Faults of a soak: kills at any moment, bad connections, clock steps and full disks.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectionFaults } from './world/faulty-proxy.js';
import type { SoakHost } from './world/soak-host.js';
import { pick, publish } from './world/soak-publisher.js';
import { bundleNames } from './world/soak-repository.js';
import type { SoakWorld } from './world/soak-world.js';

/** About how long the loader, the workers and the commit take, in milliseconds. */
const longestMoveMs = 120;
const minuteMs = 60_000;
const dayMs = 1440 * minuteMs;

/** Kills the agent during a pull, rollback, repair or start, at a random moment of its measured duration. */
export async function killAgent(world: SoakWorld, host: SoakHost): Promise<void> {
  const { random, log } = world;
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
  log.event(`${host.name}: killed the agent ${when} of ${command.join(' ')}`);
  const run = await asked.ended;
  if (command[0] === 'pull') host.acknowledged.note(run);
  if (command[0] === 'rollback') host.acknowledged.rollbackIsOver();
  host.check();
  if (random.once(3)) await pullWithoutAgent(world, host);
  if (random.once(3)) await killInStart(world, host);
  await host.agent.ensure();
  if (command[0] === 'rollback') await host.writ('resume');
}

/**
 * Chooses the moment of a kill: in half of the cases anywhere in a pull, otherwise after the swap, which is a small
 * part of it.
 */
async function killTime({ random }: SoakWorld, host: SoakHost): Promise<string> {
  const usualMs = Math.ceil(host.acknowledged.usualPullMs() * 1.1);
  const inMoveMs = random.int(longestMoveMs);
  const anywhereMs = random.int(usualMs + 1);
  if (random.once(2) && (await host.agent.waitForSwap(usualMs + 2000))) {
    await sleep(inMoveMs);
    return `${inMoveMs} ms behind the swap`;
  }
  await sleep(anywhereMs);
  return `${anywhereMs} ms into it`;
}

/** Runs a pull without an agent: the command does the cycle itself, and may be killed. */
async function pullWithoutAgent(world: SoakWorld, host: SoakHost): Promise<void> {
  const { random, log } = world;
  const alone = host.commands.beginProgram('pull');
  if (random.once(2)) {
    const afterMs = random.int(Math.ceil(host.acknowledged.usualPullMs() * 2) + 1);
    await Promise.race([sleep(afterMs), alone.ended]);
    if (alone.process.isRunning()) {
      alone.process.kill('SIGKILL');
      host.acknowledged.noteUnrest();
      log.count('kills');
      log.count('kills of a pull');
      log.event(`${host.name}: killed a pull without an agent after ${afterMs} ms`);
    }
  }
  host.acknowledged.note(await alone.ended);
  host.check();
}

async function killInStart(world: SoakWorld, host: SoakHost): Promise<void> {
  const starting = host.agent.start();
  const afterMs = world.random.int(1200);
  await sleep(afterMs);
  host.agent.kill();
  world.log.event(`${host.name}: killed the agent ${afterMs} ms into its start`);
  await starting;
  host.check();
}

export async function killServer(world: SoakWorld): Promise<void> {
  await world.killServer();
  for (const host of world.hosts) host.faults.add('connection');
  await sleep(world.random.int(3000));
  if (world.random.once(2)) await pick(world).writ('pull');
  await world.startServer();
  for (const host of world.hosts) host.faults.delete('connection');
}

export async function breakConnection(world: SoakWorld): Promise<void> {
  const host = pick(world);
  const fault = world.random.pick(connectionFaults);
  const forMs = 500 + world.random.int(6000);
  host.proxy.setFault(fault);
  world.log.count(`connection: ${fault}`);
  world.log.event(`${host.name}: the connection will ${fault} for ${forMs} ms`);
  world.breakFor(host, 'connection', forMs, () => host.proxy.setFault(undefined));
  if (!world.random.once(3)) await publish(world, world.random.pick(bundleNames), 'good');
  if (world.random.once(2)) await host.writ('pull');
}

export async function stepClock(world: SoakWorld): Promise<void> {
  const host = pick(world);
  const size = world.random.pick([10_000, 61 * minuteMs, 2 * dayMs, 40 * dayMs, 4000 * dayMs]);
  const shiftMs = world.random.once(2) ? size : -size;
  fs.writeFileSync(host.places.clockFile, String(shiftMs));
  world.log.event(`${host.name}: the clock steps by ${shiftMs / 1000} s`);
  world.breakFor(host, 'clock', 500 + world.random.int(8000), () =>
    fs.writeFileSync(host.places.clockFile, '0'),
  );
  if (world.random.once(2)) await publish(world, world.random.pick(bundleNames), 'good');
  if (world.random.once(2)) await host.writ('pull');
  if (world.random.once(3)) await killAgent(world, host);
}

export async function fillDisk(world: SoakWorld): Promise<void> {
  const { random, log } = world;
  const host = world.hosts.filter((one) => one.ownDisk && !one.faults.has('disk'))[0];
  if (host === undefined) return log.count('actions left out: no disk to fill');
  const filler = join(host.places.disk, 'filler');
  const what = random.once(3) ? 'inodes' : 'bytes';
  if (what === 'bytes') fillBytes(host.places.disk, filler, random.int(1_500_000));
  else fillInodes(host.places.disk, filler, random.int(120));
  log.count(`disk full of ${what}`);
  log.event(`${host.name}: the disk is full of ${what}`);
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
    // Another process used the last bytes: the disk is full.
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
    // Another process used the last inodes.
  }
}
