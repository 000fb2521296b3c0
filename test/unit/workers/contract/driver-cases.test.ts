import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { notifyWorker } from '../../../../src/workers/contract/notify-worker.js';
import { driverKinds } from '../../../../src/workers/registry.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import type { DriverStand, StandRow } from '../../../kit/workers/driver-stand.js';
import { standRows } from '../../../kit/workers/driver-stands.js';

const target = { generation: 7, path: '/policy/generations/7' };

/** The default is long enough for a busy machine; a case that waits for silence uses less. */
function notify(driver: Driver, worker: string, timeoutMs = 60_000): Promise<Answer> {
  return notifyWorker(driver, worker, { target, timeoutMs });
}

/** Short for a driver that waits without an answer until the deadline; long for every other answer. */
function timeoutFor(expected: Answer['kind']): number {
  return expected === 'unreachable' ? 400 : 60_000;
}

async function withStand(row: StandRow, play: (stand: DriverStand) => Promise<void>): Promise<void> {
  using dir = tempDir();
  await using stand = await row.open(dir);
  await play(stand);
}

/** The agent notifies listed members only. */
async function isListed({ driver }: DriverStand, worker: string): Promise<boolean> {
  return (await driver.members()).includes(worker);
}

// Rows run in parallel, because they mostly wait.
describe('a worker', { concurrency: 4 }, () => {
  for (const row of standRows) {
    describe(`of ${row.name}`, () => {
      it('that works', () =>
        withStand(row, async (stand) => {
          const [a, b] = stand.workers;
          await stand.set(a, 'works');
          await stand.set(b, 'works');
          assert.deepEqual(await stand.driver.members(), [a, b]);
          for (const worker of [a, b]) assert.equal((await notify(stand.driver, worker)).kind, row.works);
          assert.equal((await stand.driver.liveness?.(a)) ?? 'alive', 'alive');
        }));

      it('that refuses', () =>
        withStand(row, async (stand) => {
          const [a] = stand.workers;
          await stand.set(a, 'refuses');
          await stand.driver.members();
          // A master process that refuses is silent until the deadline.
          assert.equal((await notify(stand.driver, a, timeoutFor(row.refuses))).kind, row.refuses);
        }));

      it('that hangs, within its deadline', () =>
        withStand(row, async (stand) => {
          const [a] = stand.workers;
          await stand.set(a, 'hangs');
          await stand.driver.members();
          assert.equal((await notify(stand.driver, a, timeoutFor(row.hangs))).kind, row.hangs);
        }));

      it('that is dead', () =>
        withStand(row, async (stand) => {
          const [a] = stand.workers;
          await stand.set(a, 'works');
          await stand.driver.members();
          await stand.set(a, 'dead');
          assert.equal(await isListed(stand, a), row.deadIs === 'listed');
          assert.equal((await stand.driver.liveness?.(a)) ?? 'dead', 'dead');
          assert.equal((await notify(stand.driver, a, timeoutFor(row.dead))).kind, row.dead);
        }));

      it('of a group with another dead worker', () =>
        withStand(row, async (stand) => {
          const [a, b] = stand.workers;
          await stand.set(a, 'works');
          await stand.set(b, 'dead');
          const notified = await Promise.all([
            notify(stand.driver, a),
            notify(stand.driver, b, timeoutFor(row.dead)),
          ]);
          assert.deepEqual(
            notified.map((answer) => answer.kind),
            [row.works, row.dead],
          );
          assert.equal((await stand.driver.liveness?.(a)) ?? 'alive', 'alive');
        }));

      it('that comes back later', () =>
        withStand(row, async (stand) => {
          const [a] = stand.workers;
          await stand.set(a, 'works');
          assert.equal(await isListed(stand, a), true);
          await stand.set(a, 'dead');
          await stand.driver.members();
          assert.equal((await notify(stand.driver, a, timeoutFor(row.dead))).kind, row.dead);
          await stand.set(a, 'works');
          assert.equal(await isListed(stand, a), true);
          assert.equal((await notify(stand.driver, a)).kind, row.works);
        }));

      it('that is absent at the start', () =>
        withStand(row, async (stand) => {
          const [a, b] = stand.workers;
          await stand.set(a, 'works');
          assert.equal(await isListed(stand, b), row.absent === 'listed');
          assert.equal((await notify(stand.driver, b, 400)).kind, 'unreachable');
          await stand.set(b, 'works');
          assert.equal(await isListed(stand, b), true);
          assert.equal((await notify(stand.driver, b)).kind, row.works);
        }));
    });
  }
});

describe('the table of cases', () => {
  it('has every driver', () => {
    const missing = driverKinds.filter(({ name }) => !standRows.some((row) => row.name.startsWith(name)));
    assert.deepEqual(
      missing.map((one) => one.name),
      [],
    );
  });
});
