// Damages a host's files and requires their repair; ends every fault and requires that each host activates the newest release
// by itself, confirms it, and verifies its files.
import { setTimeout as sleep } from 'node:timers/promises';
import type { VerifyResult } from '../../../src/core/status/verify-report.js';
import type { CommandRun } from './soak-commands.js';
import {
  damageActiveTree,
  damageArchives,
  damageCurrent,
  damageGeneration,
  damageRetainedTree,
  damageStateFile,
  damageTrust,
} from './soak-damage.js';
import { canRepair } from './world/host-files.js';
import { appendKnown } from './world/known-releases.js';
import type { SoakHost } from './world/soak-host.js';
import { pick, publish, publishBoth } from './world/soak-publisher.js';
import { type BundleName, bundleNames } from './world/soak-repository.js';
import type { SoakWorld } from './world/soak-world.js';

/**
 * The longest time from damage of the active policy to its repair: the scrub interval, a scan, a download and a swap.
 */
const repairWithinMs = 60_000;
const convergeWithinMs = 60_000;
export const repairCommand = canRepair ? ['verify', '--repair'] : ['pull', '--force'];

export async function damagePolicy(world: SoakWorld): Promise<void> {
  if (!canRepair) return;
  const { random, log, knownFile } = world;
  const host = pick(world);
  host.faults.add('damage');
  if (host.faults.has('connection') || host.faults.has('disk')) host.acknowledged.forget();
  const damage = random.pick([
    damageActiveTree,
    damageActiveTree,
    damageActiveTree,
    damageGeneration,
    damageCurrent,
  ]);
  log.event(`${host.name}: damaged: ${damage(host, knownFile, random)}`);
  log.count('damages of the active policy');
  const how = random.pick(['scrub', 'verify', 'force', 'restart'] as const);
  if (how === 'verify') await host.writ(...repairCommand);
  if (how === 'force') await host.writ('pull', '--force');
  if (how === 'restart') {
    host.agent.kill();
    await host.agent.ensure();
  }
  await world.healAll();
  await requireRepaired(world, host, how);
  host.faults.delete('damage');
}

async function requireRepaired(world: SoakWorld, host: SoakHost, how: string): Promise<void> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < repairWithinMs) {
    const { generation, bundles, violations } = host.read();
    const isWhole = generation !== undefined && violations.length === 0 && !host.known.isTainted(generation);
    if (isWhole && bundles.length === bundleNames.length && bundles.every((one) => !one.tainted)) {
      appendKnown(world.knownFile, { type: 'link', policy: host.places.policy, state: 'whole' });
      const tookMs = performance.now() - startedMs;
      world.log.measure(`milliseconds to a repair by ${how}`, tookMs);
      world.log.event(`${host.name}: repaired by ${how} after ${Math.round(tookMs)} ms`);
      return;
    }
    await sleep(100);
  }
  const verified = await host.writ('verify');
  world.log.violate(
    `${host.name}: damage was not repaired by ${how}: ${JSON.stringify(verified.json)?.slice(0, 3000)}`,
  );
}

export async function damageRetainedFiles(world: SoakWorld): Promise<void> {
  const { random, log, knownFile } = world;
  const host = pick(world);
  const what = random.pick(['archives', 'trust', 'state', 'tree'] as const);
  const restart = random.once(3);
  if (restart) host.agent.kill();
  if (restart) await host.agent.process?.ended;
  const done = {
    archives: () => damageArchives(host, random),
    trust: () => damageTrust(host, random),
    state: () => damageStateFile(host, random),
    tree: () => damageRetainedTree(host, knownFile, random),
  }[what]();
  log.count(`damages of ${what}`);
  log.event(`${host.name}: damaged: ${done}`);
  host.acknowledged.noteUnrest();
  await host.agent.ensure();
  if (random.once(2)) await publish(world, random.pick(bundleNames), 'good');
  await host.writ('pull');
}

/** Ends every fault, then requires that each host activates the newest release by itself, reports it, and is intact. */
export async function endFaults(world: SoakWorld): Promise<void> {
  await world.healAll();
  for (const bundle of bundleNames) {
    if (world.repository.head(bundle)?.kind !== 'good') await publish(world, bundle, 'good');
  }
  await Promise.all(world.hosts.map((host) => recoverHost(world, host)));
}

async function recoverHost(world: SoakWorld, host: SoakHost): Promise<void> {
  await host.agent.ensure();
  await host.writ('resume');
  await requireNewest(world, host);
  await requireZero(host, ['pull']);
  if (!canRepair) return;
  const repaired = await host.writ(...repairCommand);
  if (repaired.exitCode !== 0 && isActiveIntact(repaired)) {
    // An old release cannot be downloaded again once its signed manifest was lost. The next release makes a new backup.
    world.log.count('backups that could not be repaired');
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
      host.violate(`the newest release did not become active: ${JSON.stringify(json)?.slice(0, 3000)}`);
      return;
    }
    await sleep(100);
  }
  world.log.measure('milliseconds to the newest release after every fault', performance.now() - startedMs);
}

function isActiveIntact({ json }: CommandRun): boolean {
  const { generations = [] } = (json ?? {}) as Partial<VerifyResult>;
  return generations.some(({ role, damage }) => role === 'active' && damage.length === 0);
}

/** Repeats the command until it exits with 0: a worker that was killed just now may have to be notified first. */
async function requireZero(host: SoakHost, command: readonly string[]): Promise<void> {
  let last = '';
  for (let tries = 0; tries < 8; tries++) {
    const { exitCode, json } = await host.writ(...command);
    if (exitCode === 0) return;
    last = `${exitCode} ${JSON.stringify(json)?.slice(0, 3000)}`;
    await sleep(1000);
  }
  host.violate(`writ ${command.join(' ')} without a fault: ${last}`);
}

function isNewest(world: SoakWorld, host: SoakHost): boolean {
  const { bundles, violations } = host.read();
  if (violations.length > 0 || bundles.length !== bundleNames.length) return false;
  return bundles.every(
    (one) => !one.tainted && one.serial === world.repository.head(one.bundle as BundleName)?.serial,
  );
}
