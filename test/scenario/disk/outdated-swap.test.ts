// A process that is stopped between its plan and the rename of `current`, while its state directory, the clock or the repository
// change: the link moves only where the plan still holds. Each change is made at a labelled operation of the disk.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { takeLock } from '../../../src/platform/disk/process-lock.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const day = 86_400_000;

interface Stopped extends Disposable {
  readonly test: TestHost;
  /** Acts when the next pull comes to this operation, so many times. */
  stopAt(op: string, act: () => void, times?: number): void;
}

interface SceneOptions {
  readonly driver?: ReturnType<typeof scriptedDriver>;
}

/** A host with generation 3, and release 4 on the server. */
async function stoppedHost({ driver }: SceneOptions = {}): Promise<Stopped> {
  let stop: { op: string; act: () => void; left: number } | undefined;
  const observer = {
    after: ({ op }: { op: string }) => {
      if (stop?.op !== op || stop.left === 0) return;
      stop.left -= 1;
      stop.act();
    },
  };
  const test = testHost({ observer, ...(driver ? { groups: { app: { driver } } } : {}) });
  for (const serial of [1, 2, 3]) {
    await publish(test, serial);
    assert.equal((await test.pull()).outcome, 'activated');
  }
  await publish(test, 4);
  return {
    test,
    stopAt: (op, act, times = 1) => {
      stop = { op, act, left: times };
    },
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
}

const publish = (test: TestHost, serial: number) => test.publish('access', { f: `${serial}` }, { serial });

/** A copy of the state directory. @returns what puts it back, as `rsync -a --delete` does: the lock file stays */
function backUp({ directory, host }: TestHost): () => void {
  const backup = join(directory, 'backup');
  const copy = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true } as const;
  fs.cpSync(host.paths.state, backup, copy);
  return () => {
    for (const name of fs.readdirSync(host.paths.state))
      if (name !== 'lock') fs.rmSync(join(host.paths.state, name), { recursive: true });
    for (const name of fs.readdirSync(backup).filter((one) => one !== 'lock'))
      fs.cpSync(join(backup, name), join(host.paths.state, name), copy);
  };
}

const codesOf = ({ problems }: CycleResult): string[] => problems.map(({ code }) => code);
const hasJournal = ({ host }: TestHost): boolean => fs.existsSync(host.paths.journal);
const becauseOf = ({ problems }: CycleResult) => problems.find((one) => one.code === 'SWAP_OUTDATED')?.facts;

describe('a swap whose state directory was restored from a backup before the rename', () => {
  it('is planned again, and activates a generation that exists', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    scene.stopAt('swap.journal:flush-directory', backUp(test));
    const { result, events } = await test.sync();
    assert.equal(result.outcome, 'activated');
    assert.deepEqual([test.read('access/f'), hasJournal(test)], ['4', false]);
    assert.equal(events.filter((one) => one.type === 'step.started' && one.step === 'refresh').length, 2);
    assert.notEqual(result.generation, 4);
  });

  it('fails with a code of its own the second time, with the old policy active and no journal', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    scene.stopAt('swap.journal:flush-directory', backUp(test), 2);
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.exitCode, codesOf(result)], ['failed', 1, ['SWAP_OUTDATED']]);
    assert.equal(becauseOf(result)?.['because'], 'target');
    assert.deepEqual([test.read('access/f'), hasJournal(test), result.generation], ['3', false, 3]);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(test.read('access/f'), '4');
  });

  it('says nothing of an activation where the link leads elsewhere behind the rename', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    scene.stopAt('swap.link:flush-directory', backUp(test));
    const result = await test.pull();
    assert.deepEqual([result.outcome, test.read('access/f')], ['failed', '3']);
    assert.deepEqual([becauseOf(result)?.['because'], hasJournal(test)], ['unresolved', false]);
  });

  it('blocks where a worker refuses and the generation before was removed, because the link cannot go back', async () => {
    const driver = scriptedDriver({ a: confirms });
    using scene = await stoppedHost({ driver });
    const { test } = scene;
    driver.workers.set('a', (generation) => {
      if (generation <= 3) return confirms(generation);
      fs.rmSync(join(test.host.paths.generations, '3'), { recursive: true });
      return refuses('no')();
    });
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.exitCode], ['blocked', 6]);
    assert.deepEqual(codesOf(result), ['ACTIVATION_BLOCKED', 'WORKER_REFUSED', 'SWAP_OUTDATED']);
    assert.equal(test.read('access/f'), '4');
  });

  it('puts the link back where the new generation was removed behind the rename', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    scene.stopAt('swap.link:flush-directory', () =>
      fs.rmSync(join(test.host.paths.generations, '4'), { recursive: true }),
    );
    const result = await test.pull();
    assert.deepEqual([result.outcome, codesOf(result)[0]], ['failed', 'SWAP_OUTDATED']);
    assert.deepEqual([test.read('access/f'), hasJournal(test)], ['3', false]);
  });

  it('leaves the link of another process that moved it', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    const { current } = test.host.paths;
    scene.stopAt(
      'swap.journal:flush-directory',
      () => {
        const other = fs.readlinkSync(current) === 'generations/3' ? 2 : 1;
        fs.rmSync(current);
        fs.symlinkSync(`generations/${other}`, current);
      },
      2,
    );
    const result = await test.pull();
    assert.deepEqual([result.outcome, becauseOf(result)?.['because']], ['failed', 'current']);
    assert.equal(test.read('access/f'), '1');
  });
});

describe('a swap of a process that was stopped for days', () => {
  it('takes the newer release that came meanwhile, not the one whose metadata has expired', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    const { files } = test.repository;
    const older = new Map(files);
    test.repository.moveTime(40 * day);
    await publish(test, 5);
    const newer = new Map(files);
    const serve = (served: ReadonlyMap<string, Buffer>): void => {
      files.clear();
      for (const [path, bytes] of served) files.set(path, bytes);
    };
    serve(older);
    scene.stopAt('flush.tree', () => {
      test.clock.setWallTime(test.clock.nowMs() + 40 * day);
      serve(newer);
    });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(test.read('access/f'), '5');
  });

  it('keeps the active policy where all that the server has is expired', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    scene.stopAt('swap.journal:flush-directory', () => test.clock.setWallTime(test.clock.nowMs() + 40 * day));
    const result = await test.pull();
    assert.deepEqual([result.outcome, codesOf(result)], ['failed', ['METADATA_EXPIRED']]);
    assert.deepEqual([test.read('access/f'), hasJournal(test)], ['3', false]);
  });

  it('asks the repository again after a suspend, though nothing has expired', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    scene.stopAt('flush.tree', () => {
      test.clock.suspend(3 * day);
    });
    const { result, events } = await test.sync();
    assert.deepEqual([result.outcome, test.read('access/f')], ['activated', '4']);
    assert.equal(events.filter((one) => one.type === 'step.started' && one.step === 'refresh').length, 2);
  });

  it('goes back after a refusal, and by a rollback, whatever has expired meanwhile', async () => {
    const driver = scriptedDriver({ a: confirms });
    using scene = await stoppedHost({ driver });
    const { test } = scene;
    driver.workers.set('a', (generation) => {
      if (generation <= 3) return confirms(generation);
      test.clock.setWallTime(test.clock.nowMs() + 40 * day);
      return refuses('no')();
    });
    assert.equal((await test.pull()).outcome, 'rolled-back');
    assert.equal(test.read('access/f'), '3');
    const signal = new AbortController().signal;
    const { result } = await rollBack(test.host, { by: 'ops', signal });
    assert.deepEqual([result.outcome, test.read('access/f')], ['activated', '2']);
  });
});

describe('a swap of a process whose lock file was removed', () => {
  async function locked(test: TestHost): Promise<{ readonly host: Host } & Disposable> {
    const { paths, durable, clock } = test.host;
    const request = { path: paths.lock, holder: 'pull', waitMs: 0, code: 'LOCK_HELD' } as const;
    const lock = await takeLock({ ...request, durable, clock });
    return { host: { ...test.host, lock }, [Symbol.dispose]: () => lock.release() };
  }

  it('moves nothing, writes nothing, and does not begin again', async () => {
    using scene = await stoppedHost();
    const { test } = scene;
    using mine = await locked(test);
    let ledger = '';
    scene.stopAt('flush.generation-place:flush-to', () => {
      fs.rmSync(test.host.paths.lock);
      fs.writeFileSync(test.host.paths.lock, '');
      ledger = fs.readFileSync(test.host.paths.ledger, 'utf8');
    });
    const result = await test.pullOn(mine.host);
    assert.deepEqual([result.outcome, becauseOf(result)?.['because']], ['failed', 'lock']);
    assert.equal(test.read('access/f'), '3');
    assert.equal(fs.readFileSync(test.host.paths.ledger, 'utf8'), ledger);
  });

  it('leaves the link where it is when a worker refuses after the swap', async () => {
    const driver = scriptedDriver({ a: confirms });
    using scene = await stoppedHost({ driver });
    const { test } = scene;
    using mine = await locked(test);
    driver.workers.set('a', () => {
      fs.rmSync(test.host.paths.lock);
      return refuses('no')();
    });
    const result = await test.pullOn(mine.host);
    assert.deepEqual([result.outcome, codesOf(result)], ['failed', ['WORKER_REFUSED', 'SWAP_OUTDATED']]);
    assert.deepEqual([test.read('access/f'), fs.existsSync(test.host.paths.rejected)], ['4', false]);
  });

  it('goes on while the lock is in its place', async () => {
    using scene = await stoppedHost();
    using mine = await locked(scene.test);
    assert.equal((await scene.test.pullOn(mine.host)).outcome, 'activated');
  });
});
