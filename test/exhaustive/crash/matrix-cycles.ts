// The cycles of the crash matrix: the recorded cycles of the replay, and cycles that only faults cause, such as a start after
// a crash or a restore after a refusal. matrix-hosts.ts prepares the hosts, matrix-faults.ts causes the faults.

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
  prepareDirectoryAtLedger,
  prepareEquipped,
  prepareIndependent,
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
  /** Earlier pulls, each up to its fault; the matrix begins after them. */
  readonly before?: readonly Armed[];
  /** Disk faults of every run of this cycle; each fault of the matrix comes after them. */
  readonly meets?: readonly Armed[];
  /** Default: `confirms`. */
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

/** @returns the cycle of a start after these crashes of a pull */
function startAfter(what: string, before: readonly Armed[], { prepare } = update): MatrixCycle {
  return { name: `start startAfter ${what}`, command: 'start', prepare, before };
}

/** @returns an update in which the first operation with each of these labels fails */
function failingOperations(what: string, labels: readonly string[], cycle = update): MatrixCycle {
  const meets = labels.map((label) => ({ label, nth: 1, fault: failsOnce }));
  return { ...cycle, name: `${cycle.command} in which ${what}`, meets };
}

/** As `met`, but the operation fails a second time: the first failure frees the reserve file and the agent retries. */
function failingTwice(what: string, label: string): MatrixCycle {
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
  {
    name: 'start with a directory in the place of the ledger',
    command: 'start',
    prepare: prepareDirectoryAtLedger,
  },
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
  refusedWhen('the restore cannot be written', { label: 'swap.journal:write', nth: 2 }),
  failingOperations('a generation cannot be placed', ['flush.generation-place:rename']),
  failingOperations('a record cannot be placed', ['flush.record-place:rename'], back),
  failingOperations('an archive cannot be written', ['fetch.archive:write']),
  failingOperations('a file cannot be written', ['stage.file:write']),
  failingTwice('the trust cannot be written, with the reserve freed either', 'trust.timestamp:rename'),
  failingOperations('the ledger cannot be written', ['ledger:rename']),
  failingOperations('the journal cannot be written', ['swap.journal:rename']),
  failingOperations('the link cannot be swapped', ['swap.link:rename']),
  failingOperations('the link can be neither swapped nor tidied up', [
    'swap.link:rename',
    'swap.link:discard',
  ]),
  startAfter('a kill in staging', [{ label: 'flush.generation-place:rename', nth: 1, fault: killedBefore }]),
  startAfter('a kill beside a file', [{ label: 'ledger:rename', nth: 2, fault: killedBefore }]),
  startAfter('a kill beside the link', [{ label: 'swap.link:rename', nth: 1, fault: killedBefore }]),
  startAfter('a kill startAfter the link', [{ label: 'swap.link:rename', nth: 1, fault: killedAfter }]),
  startAfter('two kills startAfter the link', [
    { label: 'swap.link:rename', nth: 1, fault: killedAfter },
    { label: 'commit.journal', nth: 1, fault: killedBefore },
  ]),
  startAfter(
    'a kill in a record',
    [{ label: 'flush.record-place:rename', nth: 1, fault: killedBefore }],
    back,
  ),
  startAfter(
    'a kill startAfter a record',
    [{ label: 'flush.record-place:rename', nth: 1, fault: killedAfter }],
    back,
  ),
];
