// A life of two days in minutes: whatever happens to the host, the rules hold and nothing grows; and the same life with a
// leak planted in it is found out. `npm run life` is the one with other seeds.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sampleSize } from '../../kit/assert/sample.js';
import { testSeed } from '../../kit/assert/seeded.js';
import { live } from './life.js';
import { leaks, type Measured } from './life-meters.js';
import { type Plant, planted } from './planted-leaks.js';

const isSample = sampleSize() !== undefined;
const hours = sampleSize() ?? 48;
/** Long enough that 10 kB a poll are more than what a life gets used to. */
const leakingHours: Readonly<Record<Plant, number>> = { descriptor: 4, memory: 16 };
const plants: readonly Plant[] = isSample ? ['descriptor'] : ['descriptor', 'memory'];

describe('the life of a host by chance', () => {
  it('holds every rule, and leaves nothing behind', async (test) => {
    const end = await live({ seed: testSeed(), hours });
    const shown = ['events', 'polls', 'pulls', 'kills', 'requests'].map(
      (name) => `${end.counts.get(name) ?? 0} ${name}`,
    );
    test.diagnostic(`${hours} virtual hours in ${Math.round(end.seconds)} s: ${shown.join(', ')}`);
    assert.deepEqual(end.violations, []);
    // In the first hours things still get their sizes.
    assert.deepEqual(isSample ? end.leaks.filter(({ meter }) => meter === 'descriptors') : end.leaks, []);
    assert.equal(end.counts.get('calms'), hours);
    assert.ok((end.counts.get('polls') ?? 0) > 10 * hours);
  });

  for (const plant of plants) {
    it(`is found to leak where ${plant} is lost at each poll`, async () => {
      const leak = planted[plant]();
      try {
        const end = await live({
          ...{ seed: testSeed(), hours: leakingHours[plant], only: 'look', leak: leak.act },
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

describe('the judgement of what grows', () => {
  const measured: Measured = {
    ...{ descriptors: 30, timers: 0, sleepers: 5, listeners: 6 },
    ...{ bytes: 100_000_000, entries: 130 },
  };
  const grownBy = (meter: keyof Measured, each: number): Measured[] =>
    Array.from({ length: 48 }, (_, hour) => ({ ...measured, [meter]: measured[meter] + hour * each }));
  const metersOf = (series: readonly Measured[]): string[] => leaks(series).map(({ meter }) => meter);

  it('takes no notice of what is flat, of one peak, and of the first quarter', () => {
    const flat = grownBy('bytes', 0);
    assert.deepEqual(metersOf(flat), []);
    assert.deepEqual(metersOf(flat.with(40, { ...measured, descriptors: 900 })), []);
    const settles = flat.map((one, hour) => (hour < 12 ? { ...one, bytes: hour * 1_000_000 } : one));
    assert.deepEqual(metersOf(settles), []);
  });

  it('takes no notice of one step, whenever it comes', () => {
    for (let at = 0; at < 48; at++) {
      const stepped = grownBy('bytes', 0).map((one, hour) =>
        hour < at ? one : { ...one, bytes: one.bytes + 1_700_000 },
      );
      assert.deepEqual(metersOf(stepped), [], `a step at hour ${at}`);
    }
  });

  it('finds two steps of a descriptor, one in each half of the time that is judged', () => {
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
