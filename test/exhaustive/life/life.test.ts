// Simulates two days of a host in minutes: whatever event happens, the rules hold and nothing grows. The same simulation with
// a planted leak must find it. `npm run life` runs it with other seeds.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sampleSize } from '../../kit/assert/sample.js';
import { testSeed } from '../../kit/assert/seeded.js';
import { leaks, type Measured } from './leak-meters.js';
import { type Plant, planted } from './planted-leaks.js';
import { simulateHost } from './simulate-host.js';

const isSample = sampleSize() !== undefined;
const hours = sampleSize() ?? 48;
/** Long enough that 10 kB a poll exceed the growth of the first hours. */
const leakingHours: Readonly<Record<Plant, number>> = { descriptor: 4, memory: 16 };
const plants: readonly Plant[] = isSample ? ['descriptor'] : ['descriptor', 'memory'];

describe('the simulation of a host with random events', () => {
  it('holds every rule and leaks nothing over two days', async (test) => {
    const end = await simulateHost({ seed: testSeed(), hours });
    const shown = ['events', 'polls', 'pulls', 'kills', 'requests'].map(
      (name) => `${end.counts.get(name) ?? 0} ${name}`,
    );
    test.diagnostic(`${hours} virtual hours in ${Math.round(end.seconds)} s: ${shown.join(', ')}`);
    assert.deepEqual(end.violations, []);
    // Caches and tables still fill in the first hours.
    assert.deepEqual(isSample ? end.leaks.filter(({ meter }) => meter === 'descriptors') : end.leaks, []);
    assert.equal(end.counts.get('calms'), hours);
    assert.ok((end.counts.get('polls') ?? 0) > 10 * hours);
  });

  for (const plant of plants) {
    it(`reports a leak when each poll leaks ${plant}`, async () => {
      const leak = planted[plant]();
      try {
        const end = await simulateHost({
          ...{ seed: testSeed(), hours: leakingHours[plant], only: 'queries that only read', leak: leak.act },
        });
        assert.deepEqual(end.violations, []);
        const meter = plant === 'memory' ? 'bytes' : 'descriptors';
        assert.ok(
          end.leaks.some((one) => one.meter === meter),
          JSON.stringify(end.growth),
        );
      } finally {
        leak.end();
      }
    });
  }
});

describe('the leak detector', () => {
  const measured: Measured = {
    ...{ descriptors: 30, timers: 0, sleepers: 5, listeners: 6 },
    ...{ bytes: 100_000_000, entries: 130 },
  };
  const grownBy = (meter: keyof Measured, each: number): Measured[] =>
    Array.from({ length: 48 }, (_, hour) => ({ ...measured, [meter]: measured[meter] + hour * each }));
  const metersOf = (series: readonly Measured[]): string[] => leaks(series).map(({ meter }) => meter);

  it('ignores a flat series, one peak, and growth in the first quarter', () => {
    const flat = grownBy('bytes', 0);
    assert.deepEqual(metersOf(flat), []);
    assert.deepEqual(metersOf(flat.with(40, { ...measured, descriptors: 900 })), []);
    const settles = flat.map((one, hour) => (hour < 12 ? { ...one, bytes: hour * 1_000_000 } : one));
    assert.deepEqual(metersOf(settles), []);
  });

  it('ignores a single step at any hour', () => {
    for (let at = 0; at < 48; at++) {
      const stepped = grownBy('bytes', 0).map((one, hour) =>
        hour < at ? one : { ...one, bytes: one.bytes + 1_700_000 },
      );
      assert.deepEqual(metersOf(stepped), [], `a step at hour ${at}`);
    }
  });

  it('finds two steps of a descriptor, one in each of the last two quarters', () => {
    const flat = grownBy('descriptors', 0);
    const stepped = flat.map((one, hour) => ({
      ...one,
      descriptors: one.descriptors + (hour < 24 ? 0 : 1) + (hour < 36 ? 0 : 1),
    }));
    assert.deepEqual(metersOf(stepped), ['descriptors']);
  });

  it('finds a descriptor in ten hours, 1 kB at each poll, and three entries an hour', () => {
    assert.deepEqual(metersOf(grownBy('descriptors', 0.1)), ['descriptors']);
    assert.deepEqual(metersOf(grownBy('bytes', 60 * 1_000)), ['bytes']);
    assert.deepEqual(metersOf(grownBy('entries', 3)), ['entries']);
  });
});
