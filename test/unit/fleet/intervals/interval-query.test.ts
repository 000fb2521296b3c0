// Pages of a history, and counts of a release that no host runs any more, from rows in the form of the store.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countPastHosts, readIntervals } from '../../../../src/fleet/intervals/interval-query.js';
import type { IntervalRow } from '../../../../src/fleet/store/tables.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';

async function storeWith(dir: TempDir, rows: readonly Partial<IntervalRow>[]) {
  const bench = await fleetBench(dir.join('store'), fakeClock());
  const values = rows.map((row, at) => ({
    ...{ key_id: `key-${at}`, bundle: 'dns', channel: 'stable', kind: 'active' as const, serial: 2 },
    ...{ manifest: '', state: 'confirmed', code: '', since_ms: 5, until_ms: 6, written_ms: 6, merged: 1 },
    ...row,
  }));
  await bench.store.db.insertInto('intervals').values(values).execute();
  return bench;
}

const of = { bundle: 'dns', channel: 'stable', serial: 2 };
const cursorOf = (place: unknown): string => Buffer.from(JSON.stringify(place)).toString('base64url');

describe('readHistory', () => {
  it('returns a next page only if there is one', async () => {
    using dir = tempDir(memory());
    await using bench = await storeWith(dir, [{}, {}]);
    const page = await readIntervals(bench.store.db, { of, limit: 2 });
    assert.deepEqual([page.intervals.length, page.next], [2, undefined]);
  });

  it('refuses a cursor with columns that no row has', async () => {
    using dir = tempDir(memory());
    await using bench = await storeWith(dir, [{}]);
    const read = (place: unknown) => readIntervals(bench.store.db, { of, limit: 2, after: cursorOf(place) });
    const place = [5, 'key', 'dns', 'stable', 'active', 2, '', ''];
    assert.deepEqual(
      (await read(place)).intervals.map(({ key }) => key),
      ['key-0'],
    );
    for (const wrong of [
      place.slice(0, -1),
      [...place, ''],
      { length: place.length },
      ['5', ...place.slice(1)],
      place.with(1, 7),
      place.with(1, 'a\0'),
      place.with(5, '2'),
      place.with(5, 2.5),
    ])
      await rejectsCode('USAGE', read(wrong));
  });
});

describe('countPastHosts', () => {
  it('counts hosts that confirmed a release apart from those that only ran it', async () => {
    using dir = tempDir(memory());
    await using bench = await storeWith(dir, [{ state: '' }, { state: 'confirmed' }, { state: 'confirmed' }]);
    assert.deepEqual(await countPastHosts(bench.store.db, of), { ran: 3, confirmed: 2, refusals: [] });
  });
});
