// The cycles of the crash matrix: those that the replay records too, and what only faults lead to, as a start behind a
// crash or the way back after a refusal. Owns how each host is prepared; the faults are matrix-faults'.
import {
  appendFileSync,
  linkSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type HostPaths, hostPaths } from '../../src/agent/paths.js';
import { systemClock } from '../../src/platform/clock.js';
import { createDurableFs } from '../../src/platform/durable-fs.js';
import { openOnlineSigners, resignOnline } from '../../src/publisher/online-signing.js';
import { withdrawRelease } from '../../src/publisher/withdraw.js';
import { keysAt } from '../support/ceremony.js';
import { delegateTo, makeTeam } from '../support/delegated-repository.js';
import { noPolicy } from '../support/host-invariant.js';
import { changeOptions } from '../support/sample-repository.js';
import type { Armed, Fault } from './matrix-faults.js';
import type { Command, WorkerKind } from './matrix-process.js';
import { type Expectation, files, policyOf, type ReplayWorld, replayCycles } from './replay-cycles.js';

export interface MatrixExpectation extends Expectation {
  /** Whole policies that may be active in between: with independent bundles, one new and one old. */
  readonly between?: readonly string[];
}

export interface MatrixCycle {
  readonly name: string;
  readonly command: Command;
  prepare(world: ReplayWorld): Promise<MatrixExpectation>;
  /** Pulls before it, each until its fault; the matrix begins behind them. */
  readonly before?: readonly Armed[];
  /** A fault of the disk that every run of this cycle meets; those of the matrix come on top, behind it. */
  readonly meets?: readonly Armed[];
  /** `confirms` by default. */
  readonly worker?: Exclude<WorkerKind, 'confirms'>;
}

const killedBefore: Fault = { kind: 'killed', when: 'before' };
const killedAfter: Fault = { kind: 'killed', when: 'after' };
const failsOnce: Fault = { kind: 'fails', errno: 'EIO', how: 'once' };

function recorded(name: string, command: Command): MatrixCycle {
  const cycle = replayCycles.find((one) => one.name === name);
  if (cycle === undefined) throw new Error(`the replay has no cycle '${name}'`);
  return { name, command, prepare: cycle.prepare };
}

const update = recorded('update', 'pull');
const back: MatrixCycle = {
  name: 'return of a withdrawn release',
  command: 'pull',
  prepare: prepareReturn,
};
const refusedOutcomes = ['rejected', 'rolled-back'];

/** @returns a start behind these crashes of a pull */
function behind(what: string, before: readonly Armed[], { prepare } = update): MatrixCycle {
  return { name: `start behind ${what}`, command: 'start', prepare, before };
}

/** @returns an update that fails because the first operation with each of these labels does */
function met(what: string, labels: readonly string[], cycle = update): MatrixCycle {
  const meets = labels.map((label) => ({ label, nth: 1, fault: failsOnce }));
  return { ...cycle, name: `${cycle.command} in which ${what}`, meets };
}

export const matrixCycles: readonly MatrixCycle[] = [
  recorded('first start', 'pull'),
  update,
  recorded('update of two bundles', 'pull'),
  { name: 'first start on a bare machine', command: 'pull', prepare: prepareBare },
  { name: 'update of independent bundles', command: 'pull', prepare: prepareIndependent },
  { name: 'update with a check, a loader, a group and a socket', command: 'pull', prepare: prepareEquipped },
  { name: 'update by a delegated role', command: 'pull', prepare: prepareDelegated },
  back,
  recorded('rollback', 'rollback'),
  recorded('root rotation', 'pull'),
  recorded('new keys and no new release', 'pull'),
  {
    name: 'time that is set back',
    command: 'pull',
    prepare: (world: ReplayWorld) => prepareTime(world, [0, -hourMs]),
  },
  {
    name: 'time that is right again',
    command: 'pull',
    prepare: (world: ReplayWorld) => prepareTime(world, [0, -hourMs, 0]),
  },
  { name: 'scrub repair', command: 'start', prepare: (world) => prepareDamaged(world, 'archive kept') },
  {
    name: 'scrub repair without an archive',
    command: 'start',
    prepare: (world) => prepareDamaged(world, 'archive lost'),
  },
  { name: 'start with a broken ledger', command: 'start', prepare: prepareBroken },
  {
    name: 'update that the worker refuses',
    command: 'pull',
    worker: 'refuses all but the first',
    prepare: prepareRefused,
  },
  {
    name: 'first start that the worker refuses',
    command: 'pull',
    worker: 'refuses',
    prepare: async ({ repository }) => {
      await repository.publish(files(2));
      return {
        policies: { new: policyOf({ 'dns-edge': 2 }) },
        from: noPolicy,
        to: noPolicy,
        between: ['new'],
        ends: () => noPolicy,
        succeeds: refusedOutcomes,
      };
    },
  },
  met('a generation cannot be placed', ['flush.generation-place:rename']),
  met('a record cannot be placed', ['flush.record-place:rename'], back),
  met('an archive cannot be written', ['fetch.archive:write']),
  met('a file cannot be written', ['stage.file:write']),
  met('the trust cannot be written', ['trust.timestamp:rename']),
  met('the ledger cannot be written', ['ledger:rename']),
  met('the journal cannot be written', ['swap.journal:rename']),
  met('the link cannot be swapped', ['swap.link:rename']),
  met('the link can be neither swapped nor tidied up', ['swap.link:rename', 'swap.link:discard']),
  behind('a kill in staging', [{ label: 'flush.generation-place:rename', nth: 1, fault: killedBefore }]),
  behind('a kill beside a file', [{ label: 'ledger:rename', nth: 2, fault: killedBefore }]),
  behind('a kill beside the link', [{ label: 'swap.link:rename', nth: 1, fault: killedBefore }]),
  behind('a kill behind the link', [{ label: 'swap.link:rename', nth: 1, fault: killedAfter }]),
  behind('two kills behind the link', [
    { label: 'swap.link:rename', nth: 1, fault: killedAfter },
    { label: 'commit.journal', nth: 1, fault: killedBefore },
  ]),
  behind('a kill in a record', [{ label: 'flush.record-place:rename', nth: 1, fault: killedBefore }], back),
  behind(
    'a kill behind a record',
    [{ label: 'flush.record-place:rename', nth: 1, fault: killedAfter }],
    back,
  ),
];

async function publishBoth({ repository }: ReplayWorld, version: number): Promise<void> {
  await repository.publish(files(version));
  await repository.publish(files(version), { bundle: 'access' });
}

async function prepareIndependent(world: ReplayWorld): Promise<MatrixExpectation> {
  world.configure({ bundles: [{ name: 'dns-edge' }, { name: 'access' }] });
  await publishBoth(world, 1);
  await world.pull();
  await publishBoth(world, 2);
  return {
    policies: {
      old: policyOf({ 'dns-edge': 1, access: 1 }),
      first: policyOf({ 'dns-edge': 2, access: 1 }),
      second: policyOf({ 'dns-edge': 1, access: 2 }),
      new: policyOf({ 'dns-edge': 2, access: 2 }),
    },
    from: 'old',
    to: 'new',
    between: ['first', 'second'],
    ends: () => 'new',
  };
}

const oldAndNew = { old: policyOf({ 'dns-edge': 1 }), new: policyOf({ 'dns-edge': 2 }) };
const fromOldToNew = { policies: oldAndNew, from: 'old', to: 'new', ends: () => 'new' } as const;

/** Everything that a configuration can have done to the disk; the history is full. */
async function prepareEquipped(world: ReplayWorld): Promise<MatrixExpectation> {
  const group = process.getgid?.() ?? 0;
  world.configure({
    bundles: [{ name: 'dns-edge', group, checks: [{ name: 'yes', run: ['true'] }] }],
    workers: [
      {
        ...native,
        canary: { start: ['sleep', '60'], probe: ['true'] },
        load: { run: ['true'] },
        reset: { ...native.reset, socketGroup: group },
      },
    ],
  });
  await world.repository.publish(files(1));
  await world.pull();
  await world.repository.publish(files(2));
  await leaveSocket(world);
  writeFileSync(pathsOf(world).history, `${'x'.repeat(9_999_990)}\n`);
  return fromOldToNew;
}

/** As a killed process leaves it: there, and nobody listens. */
async function leaveSocket({ dir }: ReplayWorld): Promise<void> {
  const path = join(realpathSync(dir.path), 'run', 'workers', 'resolver.sock');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  // A server that closes removes the name that it knows.
  linkSync(path, `${path}.kept`);
  await new Promise((resolve) => server.close(resolve));
  renameSync(`${path}.kept`, path);
}

async function prepareDelegated(world: ReplayWorld): Promise<MatrixExpectation> {
  const { repository, dir } = world;
  await repository.publish(files(1));
  await world.pull();
  const team = makeTeam(dir, 'dns-team');
  await delegateTo(repository, team, { handOver: 'yes' });
  await repository.publish(files(2), { keys: team.keys });
  await repository.refresh();
  return fromOldToNew;
}

/** The record of the release is here already, and is replaced by that of its second coming. */
async function prepareReturn(world: ReplayWorld): Promise<MatrixExpectation> {
  const { repository } = world;
  for (const version of [2, 1]) {
    await repository.publish(files(version));
    await world.pull();
  }
  const withdrawal = { bundle: 'dns-edge', serials: [2], reason: '' };
  await withdrawRelease(withdrawal, changeOptions(repository));
  return fromOldToNew;
}

async function prepareRefused(world: ReplayWorld): Promise<MatrixExpectation> {
  await world.repository.publish(files(1));
  await world.pull();
  await world.repository.publish(files(2));
  const policies = oldAndNew;
  return {
    policies,
    from: 'old',
    to: 'old',
    between: ['new'],
    ends: () => 'old',
    succeeds: refusedOutcomes,
  };
}

const native = { name: 'resolver', uses: ['dns-edge'], reset: { native: 'resolver' } };

/** Not even the directories above the host's are there. */
async function prepareBare(world: ReplayWorld): Promise<MatrixExpectation> {
  world.configure({ workers: [native] });
  await world.repository.publish(files(2));
  rmSync(join(world.disk, 'lib'), { recursive: true });
  return { ...fromOldToNew, from: noPolicy };
}

const hourMs = 3_600_000;

/** @param steps what the publisher's clock is off by at each of its signatures; hosts have seen all but the last */
async function prepareTime(world: ReplayWorld, steps: readonly number[]): Promise<MatrixExpectation> {
  const { repository } = world;
  await repository.publish(files(1));
  for (const [index, offByMs] of steps.entries()) {
    if (index > 0) await world.pull();
    const signers = await openOnlineSigners(repository.directory, keysAt(repository.keys));
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offByMs };
    const options = { repository: repository.directory, signers, clock, durableFs: createDurableFs() };
    await resignOnline({ ...options, roles: ['timestamp'], holder: 'test', lockWaitMs: 0 });
  }
  return { ...fromOldToNew, to: 'old', ends: () => 'old' };
}

/** Somebody has edited a file of the active policy. */
async function prepareDamaged(
  world: ReplayWorld,
  archive: 'archive kept' | 'archive lost',
): Promise<MatrixExpectation> {
  for (const version of [1, 2]) {
    await world.repository.publish(files(version));
    await world.pull();
  }
  const { archives, current } = pathsOf(world);
  appendFileSync(join(current, 'dns-edge', 'block.rpz'), '# mine\n');
  const newest = readdirSync(join(archives, 'dns-edge')).find((name) => name.startsWith('2-')) ?? '';
  if (archive === 'archive lost') rmSync(join(archives, 'dns-edge', newest, 'archive.tar.br'));
  const damaged = { ...oldAndNew.new, 'dns-edge/block.rpz': 'version 2\n# mine\n' };
  // A disk that fails in the repair leads to the generation before, too.
  const [to, between] = archive === 'archive kept' ? (['new', ['old']] as const) : (['old', []] as const);
  return { policies: { ...oldAndNew, damaged }, from: 'damaged', to, between, ends: () => 'new' };
}

async function prepareBroken(world: ReplayWorld): Promise<MatrixExpectation> {
  await world.repository.publish(files(1));
  await world.pull();
  await world.repository.publish(files(2));
  writeFileSync(pathsOf(world).ledger, '{"writ":1,');
  return { ...fromOldToNew, to: 'old' };
}

function pathsOf({ disk }: ReplayWorld): HostPaths {
  const state = join(disk, 'lib/writ');
  return hostPaths({ state, policy: join(state, 'policy'), run: '', socket: '' });
}
