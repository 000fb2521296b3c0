// The cycles of the crash matrix: those that the replay records too, and what only faults lead to, as a start behind a
// crash or the way back after a refusal. How each host is prepared is matrix-hosts', the faults are matrix-faults'.

import { type ReplayWorld, replayCycles } from '../replay/replay-cycles.js';
import type { Armed, Fault, Moment } from './matrix-faults.js';
import {
  hourMs,
  type MatrixExpectation,
  prepareBare,
  prepareBroken,
  prepareByDifference,
  prepareDamaged,
  prepareDamagedByDifference,
  prepareDelegated,
  prepareEquipped,
  prepareIndependent,
  prepareInTheWay,
  prepareLost,
  preparePartial,
  prepareRefused,
  prepareRefusedAtFirst,
  prepareReturn,
  prepareTime,
} from './matrix-hosts.js';
import type { Command, WorkerKind } from './matrix-process.js';

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

/** @returns a start behind these crashes of a pull */
function behind(what: string, before: readonly Armed[], { prepare } = update): MatrixCycle {
  return { name: `start behind ${what}`, command: 'start', prepare, before };
}

/** @returns an update that fails because the first operation with each of these labels does */
function met(what: string, labels: readonly string[], cycle = update): MatrixCycle {
  const meets = labels.map((label) => ({ label, nth: 1, fault: failsOnce }));
  return { ...cycle, name: `${cycle.command} in which ${what}`, meets };
}

/** As met, where the first failure frees the reserve and the operation is tried again. */
function metTwice(what: string, label: string): MatrixCycle {
  const meets = [1, 2].map((nth) => ({ label, nth, fault: failsOnce }));
  return { ...update, name: `${update.command} in which ${what}`, meets };
}

/** @returns an update that the worker refuses, on a disk that fails at this moment */
function refusedWhen(what: string, moment: Moment): MatrixCycle {
  return {
    name: `update that the worker refuses when ${what}`,
    command: 'pull',
    worker: 'refuses all but the first',
    prepare: prepareRefused,
    meets: [{ ...moment, fault: failsOnce }],
  };
}

export const matrixCycles: readonly MatrixCycle[] = [
  recorded('first start', 'pull'),
  update,
  recorded('update of two bundles', 'pull'),
  { name: 'first start on a bare machine', command: 'pull', prepare: prepareBare },
  { name: 'update of independent bundles', command: 'pull', prepare: prepareIndependent },
  { name: 'update with a check, a loader, a group and a socket', command: 'pull', prepare: prepareEquipped },
  { name: 'update by difference', command: 'pull', prepare: prepareByDifference },
  {
    name: 'update that goes on where another was cut',
    command: 'pull',
    prepare: (world) => preparePartial(world, 'half of it'),
  },
  {
    name: 'update that goes on with wrong bytes',
    command: 'pull',
    prepare: (world) => preparePartial(world, 'wrong bytes'),
  },
  {
    name: 'update with more than its partial can be',
    command: 'pull',
    prepare: (world) => preparePartial(world, 'more than was signed'),
  },
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
  { name: 'scrub repair from kept deltas', command: 'start', prepare: prepareDamagedByDifference },
  {
    name: 'scrub repair without an archive',
    command: 'start',
    prepare: (world) => prepareDamaged(world, 'archive lost'),
  },
  {
    name: 'start without record and manifest',
    command: 'start',
    prepare: (world) => prepareLost(world),
  },
  { name: 'start with a broken ledger', command: 'start', prepare: prepareBroken },
  { name: 'start with a directory in the place of the ledger', command: 'start', prepare: prepareInTheWay },
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
    prepare: prepareRefusedAtFirst,
  },
  refusedWhen('the refusal cannot be written', { label: 'refusals:write', nth: 1 }),
  refusedWhen('the way back cannot be written', { label: 'swap.journal:write', nth: 2 }),
  met('a generation cannot be placed', ['flush.generation-place:rename']),
  met('a record cannot be placed', ['flush.record-place:rename'], back),
  met('an archive cannot be written', ['fetch.archive:write']),
  met('a file cannot be written', ['stage.file:write']),
  metTwice('the trust cannot be written, with the reserve freed either', 'trust.timestamp:rename'),
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
