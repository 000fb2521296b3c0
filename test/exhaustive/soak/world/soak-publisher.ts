// Actions of a publisher and an operator in a soak: good and bad releases, withdrawals, root rotations, rollbacks.
import type { SoakHost } from './soak-host.js';
import { type BundleName, bundleNames } from './soak-repository.js';
import type { SoakWorld } from './soak-world.js';

export function pick(world: SoakWorld): SoakHost {
  return world.random.pick(world.hosts);
}

export async function publish(
  world: SoakWorld,
  bundle: BundleName,
  kind: 'good' | 'refused' | 'nacked',
): Promise<void> {
  const serial = await world.repository.publish(bundle, kind);
  world.log.count('publishes');
  world.log.event(`published ${bundle} ${serial}, ${kind}`);
}

export async function publishBoth(world: SoakWorld): Promise<void> {
  for (const bundle of bundleNames) await publish(world, bundle, 'good');
}

export async function publishNacked(world: SoakWorld): Promise<void> {
  for (const host of world.hosts) host.acknowledged.noteUnrest();
  if (world.random.once(2)) await publish(world, 'edge', 'good');
  await publish(world, 'access', 'nacked');
  if (world.random.once(2)) await pick(world).writ('pull');
}

export async function withdraw(world: SoakWorld): Promise<void> {
  const bundle = world.random.pick(bundleNames);
  const moved = await world.repository.withdraw(bundle);
  if (moved === undefined) return;
  world.log.count('withdrawals');
  world.log.event(`withdrew ${bundle} ${moved.from}, back to ${moved.to}`);
}

export async function rotate(world: SoakWorld): Promise<void> {
  const role = await world.repository.rotate();
  world.log.count('root rotations');
  world.log.event(`rotated the root, new keys: ${role}`);
}

export async function rollBack(world: SoakWorld, host: SoakHost): Promise<void> {
  host.expectRollback();
  await host.writ('rollback', '--reason', 'soak');
  host.acknowledged.rollbackIsOver();
  if (world.random.once(2)) await publish(world, world.random.pick(bundleNames), 'good');
  await host.writ('pull');
  await host.writ('resume');
  await host.writ('pull');
}
