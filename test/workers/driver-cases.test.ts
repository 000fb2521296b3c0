import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../src/workers/driver.js';
import { driverKinds } from '../../src/workers/registry.js';
import { tellWorker } from '../../src/workers/tell-worker.js';
import { type DriverStand, type StandRow, standRows } from '../support/driver-stands.js';
import { tempDir } from '../support/temp-dir.js';

const target = { generation: 7, path: '/policy/generations/7' };

/** Long enough for a busy machine; a case that waits for silence asks for less. */
function tell(driver: Driver, worker: string, timeoutMs = 10_000): Promise<Answer> {
  return tellWorker(driver, worker, { target, timeoutMs });
}

async function withStand(row: StandRow, play: (stand: DriverStand) => Promise<void>): Promise<void> {
  using dir = tempDir();
  await using stand = await row.open(dir);
  await play(stand);
}

/** A worker is told as one that is gone when it is not of the set: by the agent, nobody is. */
async function isListed({ driver }: DriverStand, worker: string): Promise<boolean> {
  return (await driver.members()).includes(worker);
}

for (const row of standRows) {
  describe(`a worker of ${row.name}`, () => {
    it('that works', () =>
      withStand(row, async (stand) => {
        const [a, b] = stand.workers;
        await stand.set(a, 'works');
        await stand.set(b, 'works');
        assert.deepEqual(await stand.driver.members(), [a, b]);
        for (const worker of [a, b]) assert.equal((await tell(stand.driver, worker)).kind, row.works);
        assert.equal((await stand.driver.liveness?.(a)) ?? 'alive', 'alive');
      }));

    it('that refuses', { skip: row.refuses === undefined }, () =>
      withStand(row, async (stand) => {
        const [a] = stand.workers;
        await stand.set(a, 'refuses');
        await stand.driver.members();
        // A master that refuses is silent: its deadline must pass.
        const timeoutMs = row.refuses === 'unreachable' ? 400 : 10_000;
        assert.equal((await tell(stand.driver, a, timeoutMs)).kind, row.refuses);
      }),
    );

    it('that hangs, within its deadline', { skip: row.hangs === undefined }, () =>
      withStand(row, async (stand) => {
        const [a] = stand.workers;
        await stand.set(a, 'hangs');
        await stand.driver.members();
        assert.equal((await tell(stand.driver, a, 400)).kind, row.hangs);
      }),
    );

    it('that is dead, while the other half of the set is told', () =>
      withStand(row, async (stand) => {
        const [a, b] = stand.workers;
        await stand.set(a, 'works');
        await stand.set(b, 'dead');
        assert.equal(await isListed(stand, b), row.dead === 'listed');
        assert.equal((await tell(stand.driver, b, 400)).kind, 'unreachable');
        assert.equal((await stand.driver.liveness?.(b)) ?? 'dead', 'dead');
        assert.equal((await tell(stand.driver, a)).kind, row.works);
      }));

    it('that comes back later', () =>
      withStand(row, async (stand) => {
        const [a] = stand.workers;
        await stand.set(a, 'works');
        assert.equal(await isListed(stand, a), true);
        await stand.set(a, 'dead');
        await stand.driver.members();
        assert.equal((await tell(stand.driver, a, 400)).kind, 'unreachable');
        await stand.set(a, 'works');
        assert.equal(await isListed(stand, a), true);
        assert.equal((await tell(stand.driver, a)).kind, row.works);
      }));

    it('that is absent at the start', () =>
      withStand(row, async (stand) => {
        const [a, b] = stand.workers;
        await stand.set(a, 'works');
        assert.equal(await isListed(stand, b), row.absent === 'listed');
        assert.equal((await tell(stand.driver, b, 400)).kind, 'unreachable');
        await stand.set(b, 'works');
        assert.equal(await isListed(stand, b), true);
        assert.equal((await tell(stand.driver, b)).kind, row.works);
      }));
  });
}

describe('the table of cases', () => {
  it('has every driver', () => {
    const missing = driverKinds.filter(({ name }) => !standRows.some((row) => row.name.startsWith(name)));
    assert.deepEqual(
      missing.map((one) => one.name),
      [],
    );
  });
});
