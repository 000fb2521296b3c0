// A disk that fails at every single write of a cycle, once or permanently: the cycle ends with an answer, the policy is one of
// the two complete ones, and after the repair of the disk the release becomes active and every worker uses it.
import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { recoverHost } from '../../../src/agent/startup/recover-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import { showResult } from '../../../src/cli/show/show-result.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { ErrorCode } from '../../../src/core/errors.js';
import type { OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import { publishNext } from '../../kit/assert/fault-table.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

interface DiskFault {
  readonly errno: string;
  readonly code: ErrorCode;
  readonly how: 'once' | 'for good';
  /** The agent that pulls after the repair of the disk. */
  readonly then: 'goes on' | 'restarts';
}

const full = { errno: 'ENOSPC', code: 'DISK_FULL' } as const;

/** The errors of a disk or its file system beside a full disk. */
const codeOfErrno = {
  EIO: 'DISK_FAILED',
  EROFS: 'DISK_READ_ONLY',
  EMFILE: 'TOO_MANY_FILES',
  ENFILE: 'TOO_MANY_FILES',
  EDQUOT: 'DISK_QUOTA',
  EACCES: 'DISK_DENIED',
} as const satisfies Record<string, ErrorCode>;

interface Disk extends OperationObserver {
  /** Operations so far, in order. */
  readonly seen: string[];
  /** The n-th operation fails, and with `for good` every one after it. */
  failAt(index: number, fault: Pick<DiskFault, 'errno' | 'how'>): void;
  /** From the next operation of this label on, every one fails. */
  failFrom(label: string, errno: string): void;
  mend(): void;
}

function failingDisk(): Disk {
  const seen: string[] = [];
  let fails = (_index: number, _op: string): boolean => false;
  let fault = 'ENOSPC';
  return {
    seen,
    failAt: (index, { errno, how }) => {
      fault = errno;
      fails = (at) => (how === 'once' ? at === index : at >= index);
    },
    failFrom: (label, errno) => {
      fault = errno;
      let isBroken = false;
      fails = (_index, op) => {
        isBroken ||= op === label;
        return isBroken;
      };
    },
    mend: () => {
      fails = () => false;
    },
    before: ({ op }) => {
      seen.push(op);
      if (!fails(seen.length - 1, op)) return;
      throw Object.assign(new Error(`${fault}: the disk says no, ${op}`), { code: fault });
    },
  };
}

interface Bench extends Disposable {
  readonly test: TestHost;
  readonly disk: Disk;
  readonly driver: ScriptedDriver;
}

/** Release 5 is active as generation 1, release 6 is published. */
async function bench(): Promise<Bench> {
  const disk = failingDisk();
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ observer: disk, groups: { app: { driver } } });
  await publishNext(test, 5);
  assert.equal((await test.pull()).outcome, 'activated');
  await publishNext(test, 6);
  disk.seen.splice(0);
  return { test, disk, driver, [Symbol.dispose]: () => test[Symbol.dispose]() };
}

async function operationsOfACycle(): Promise<readonly string[]> {
  using one = await bench();
  assert.equal((await one.test.pull()).outcome, 'activated');
  return [...one.disk.seen];
}

const signal = new AbortController().signal;
const recovered = async (host: Host): Promise<Host> => {
  await recoverHost(host, { cycle: 'c-recovery', signal });
  return host;
};

/** The next pull, by the same agent or by a new one. */
async function pullOn(host: Host): Promise<void> {
  const { result } = await syncCycle(host, { cycle: 'c-next', trigger: 'pull', force: 'no', signal });
  assert.equal(result.exitCode, 0, JSON.stringify(result.problems));
}

/** The last writes only remove unneeded files; a partial download without a set time has the time of the system. */
function isTidying(op: string | undefined): boolean {
  return op === 'stage.sweep' || op === 'partial.sweep';
}

/** The notes of a notification: the ledger is written twice between the swap and the commit, and the commit writes it whole. */
function isNotedAgain(seen: readonly string[], index: number): boolean {
  const swap = seen.indexOf('swap.link:rename');
  const writes = seen.slice(swap, index + 1).filter((one) => one === 'ledger:write');
  const isAfterSwap = swap >= 0 && swap < index;
  return isAfterSwap && seen[index]?.startsWith('ledger:') === true && writes.length <= 2;
}

async function survives(index: number, fault: DiskFault): Promise<void> {
  using one = await bench();
  const { test, disk, driver } = one;
  disk.failAt(index, fault);
  const result = await test.pull();
  const op = disk.seen[index];
  const version = Number(/version: (\d)/.exec(test.read('access/policy.yaml'))?.[1]);
  if (result.changed && result.exitCode !== 0)
    assert.match(showResult(result).lines.join('\n'), /Generation 2 is active/, op);
  const isOptional = op === 'partial.time' || isNotedAgain(disk.seen, index);
  if (!isTidying(op) && !(isOptional && fault.how === 'once'))
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, fault.code], `${op} ${fault.errno}`);
  assert.equal(result.changed, version === 6, op);
  assert.deepEqual(test.host.refusals.read().refusals, [], op);

  disk.mend();
  await pullOn(fault.then === 'restarts' ? await recovered(test.reopen()) : test.host);
  assert.equal(test.read('access/policy.yaml'), 'version: 6\n', op);
  const generation = Number(/\d+$/.exec(driver.notified.at(-1) ?? '')?.[0]);
  assert.equal(`generations/${generation}`, currentOf(test), `${op}: notified ${driver.notified.join()}`);
}

function currentOf(test: TestHost): string {
  return readlinkSync(test.host.paths.current);
}

describe('a disk that is full', longCase, () => {
  for (const [how, then] of [
    ['once', 'goes on'],
    ['for good', 'restarts'],
  ] as const) {
    it(`${how}, at any write, leaves a whole policy, and the release comes when the agent ${then}`, async () => {
      const operations = await operationsOfACycle();
      assert.ok(operations.length > 20, operations.join(' '));
      for (const index of operations.keys()) await survives(index, { ...full, how, then });
    });
  }
});

describe('a disk with an error', longCase, () => {
  it('of any kind, at any operation of an update, gives a code and no refusal of the release', async () => {
    const labels = [...new Set(await operationsOfACycle())].filter((op) => !isTidying(op));
    for (const label of labels) await hasItsCodes(label);
  });
});

function pullFailing({ test, disk }: Bench, label: string, errno: string): Promise<CycleResult> {
  disk.seen.splice(0);
  disk.failFrom(label, errno);
  return test.pull();
}

/** One host for all of them, as long as its policy is the old one: behind the swap each needs its own. */
async function hasItsCodes(label: string): Promise<void> {
  let one = await bench();
  for (const [errno, code] of Object.entries(codeOfErrno)) {
    let result = await pullFailing(one, label, errno);
    if (!one.disk.seen.includes(label)) {
      // The try before has completed this operation: its file of trust exists now.
      one[Symbol.dispose]();
      one = await bench();
      result = await pullFailing(one, label, errno);
    }
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, code], `${label} ${errno}`);
    assert.deepEqual(one.test.host.refusals.read().refusals, [], label);
    one.disk.mend();
    if (result.changed) {
      await pullOn(one.test.host);
      one[Symbol.dispose]();
      one = await bench();
    }
    assert.equal(one.test.read('access/policy.yaml'), 'version: 5\n', `${label} ${errno}`);
  }
  await pullOn(await recovered(one.test.reopen()));
  assert.equal(one.test.read('access/policy.yaml'), 'version: 6\n', label);
  one[Symbol.dispose]();
}

describe('a flush that fails', () => {
  for (const label of ['flush.tree', 'fetch.archive:flush']) {
    it(`at ${label} is never tried again: what it was of is discarded, and made anew`, async () => {
      using one = await bench();
      const { test, disk } = one;
      const counted = (op: string): number => disk.seen.filter((seen) => seen === op).length;
      const made = ['partial.create', 'stage.file:create', label];
      disk.failAt((await operationsOfACycle()).indexOf(label), { errno: 'EIO', how: 'once' });
      assert.equal((await test.pull()).problems[0]?.code, 'DISK_FAILED');
      assert.equal(counted(label), 1);
      assert.deepEqual(readdirSync(test.host.paths.staging), []);
      disk.seen.splice(0);
      disk.mend();
      assert.equal((await test.pull()).outcome, 'activated');
      assert.deepEqual(made.map(counted), [1, 1, 1], 'fetched, unpacked and flushed once more');
    });
  }
});

describe('a disk that is full when a worker refuses', () => {
  it('keeps the refusal in memory, and the old policy is restored', async () => {
    const driver = scriptedDriver({
      a: (generation) => (generation === 2 ? refuses('no')() : confirms(generation)),
    });
    let isFull = false;
    const before = ({ op }: { readonly op: string }): void => {
      if (isFull && op.startsWith('refusals')) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    using test = testHost({ observer: { before }, groups: { app: { driver } } });
    await publishNext(test, 5);
    await test.pull();
    await publishNext(test, 6);
    isFull = true;
    assert.equal((await test.pull()).outcome, 'rolled-back');
    assert.equal(test.read('access/policy.yaml'), 'version: 5\n');
    assert.deepEqual(
      test.host.refusals.read().refusals.map((one) => one.code),
      ['WORKER_REFUSED'],
    );
  });
});
