// The table of a soak's actions, and the seeded choice of the next action by its weight.

import { breakConnection, fillDisk, killAgent, killServer, stepClock } from './soak-faults.js';
import { damagePolicy, damageRetainedFiles, endFaults, repairCommand } from './soak-repair.js';
import {
  pick,
  publish,
  publishBoth,
  publishNacked,
  rollBack,
  rotate,
  withdraw,
} from './world/soak-publisher.js';
import { bundleNames } from './world/soak-repository.js';
import type { SoakWorld } from './world/soak-world.js';

interface Action {
  readonly name: string;
  readonly weight: number;
  readonly act: (world: SoakWorld) => Promise<void>;
}

const actions: readonly Action[] = [
  { name: 'publish', weight: 8, act: (world) => publish(world, world.random.pick(bundleNames), 'good') },
  { name: 'publish both bundles', weight: 4, act: publishBoth },
  {
    name: 'publish a release that a check refuses',
    weight: 2,
    act: (world) => publish(world, world.random.pick(bundleNames), 'refused'),
  },
  { name: 'publish a release that a worker refuses', weight: 3, act: publishNacked },
  { name: 'withdraw', weight: 3, act: withdraw },
  { name: 'rotate the root', weight: 2, act: rotate },
  {
    name: 'collect in the repository',
    weight: 1,
    act: async (world) => world.log.count('files collected', await world.repository.collect()),
  },
  { name: 'pull', weight: 4, act: async (world) => void (await pick(world).writ('pull')) },
  { name: 'pull --force', weight: 3, act: async (world) => void (await pick(world).writ('pull', '--force')) },
  { name: 'roll back and resume', weight: 3, act: (world) => rollBack(world, pick(world)) },
  { name: 'kill the agent', weight: 10, act: (world) => killAgent(world, pick(world)) },
  { name: 'kill the server', weight: 2, act: killServer },
  {
    name: 'kill a worker',
    weight: 2,
    act: (world) => pick(world).users.kill(world.random.pick(['native', 'daemon'])),
  },
  { name: 'break the connection', weight: 4, act: breakConnection },
  { name: 'step the clock', weight: 3, act: stepClock },
  { name: 'fill the disk', weight: 4, act: fillDisk },
  { name: 'damage the active policy', weight: 5, act: damagePolicy },
  { name: 'damage retained files', weight: 4, act: damageRetainedFiles },
  {
    name: 'verify --repair',
    weight: 2,
    act: async (world) => void (await pick(world).writ(...repairCommand)),
  },
  { name: 'end every fault', weight: 3, act: endFaults },
];

/**
 * @param only part of the names of the actions to choose from
 * @returns an action, chosen by its weight
 */
export function chooseAction(world: SoakWorld, only: string): Action {
  const some = actions.filter(({ name }) => name.includes(only));
  const total = some.reduce((sum, { weight }) => sum + weight, 0);
  let left = world.random.int(total);
  for (const action of some) {
    left -= action.weight;
    if (left < 0) return action;
  }
  throw new RangeError(`no action matches ${only}`);
}
