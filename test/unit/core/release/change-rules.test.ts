import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type ChangeBounds,
  type ChangeExcess,
  exceedsPercent,
  excessOfChange,
  fallsShortOfPercent,
  measureChange,
  percentAbove,
  percentBelow,
} from '../../../../src/core/release/change-rules.js';
import type { Manifest } from '../../../../src/core/release/manifest.js';
import { manifestFile } from '../../../kit/repository/archive-builder.js';

/** Sizes by path; the content follows from the size. */
type Sizes = Readonly<Record<string, number>>;

function tree(sizes: Sizes): Manifest {
  const paths = Object.keys(sizes).sort();
  return {
    files: paths.map((path) => ({
      ...manifestFile({ path, content: String(sizes[path]) }),
      sizeBytes: sizes[path] ?? 0,
    })),
  };
}

function many(count: number, sizeBytes: number): Sizes {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, sizeBytes]));
}

const defaults: ChangeBounds = { maxRemovedPercent: 50 };

function rules(before: Sizes, after: Sizes, bounds = defaults): ChangeExcess['rule'][] {
  return excessOfChange(measureChange(tree(before), tree(after)), bounds).map(({ rule }) => rule);
}

describe('excessOfChange', () => {
  it('permits the removal of half of the files and half of the bytes, and not of one more', () => {
    assert.deepEqual(rules(many(10, 100), many(5, 100)), []);
    assert.deepEqual(rules(many(10, 100), { ...many(4, 100), f9: 0 }), ['bytes-removed']);
    assert.deepEqual(rules({ a: 200 }, { a: 100 }), []);
    assert.deepEqual(rules({ a: 200 }, { a: 99 }), ['bytes-removed']);
    assert.deepEqual(rules(many(11, 100), { ...many(5, 100), big: 600 }), ['files-removed']);
  });

  it('counts a renamed file as removed', () => {
    assert.deepEqual(rules({ a: 10, b: 10, c: 10 }, { a: 10, x: 10, y: 10 }), ['files-removed']);
  });

  it('names only an empty bundle, for each bound', () => {
    const bounds = { maxRemovedPercent: 100 };
    assert.deepEqual(rules({ a: 5, b: 2000 }, { a: 0, b: 0 }, bounds), ['bundle-empty']);
    assert.deepEqual(rules({ a: 5 }, {}, bounds), ['bundle-empty']);
  });

  it('names a file of over a kilobyte that becomes empty, for each bound', () => {
    const bounds = { maxRemovedPercent: 100 };
    assert.deepEqual(rules({ a: 1001, b: 9000 }, { a: 0, b: 9000 }, bounds), ['file-emptied']);
    assert.deepEqual(rules({ a: 1000, b: 9000 }, { a: 0, b: 9000 }, bounds), []);
    const [excess] = excessOfChange(
      measureChange(tree({ a: 2000, b: 3000, c: 99_000 }), tree({ a: 0, b: 0, c: 99_000 })),
      defaults,
    );
    assert.deepEqual(excess, {
      rule: 'file-emptied',
      expected: 'no file of more than 1.0 kB emptied',
      actual: 'a (2.0 kB) and 1 more emptied',
    });
  });

  it('bounds growth where a bound is given, in files and in bytes', () => {
    assert.deepEqual(rules({ a: 1 }, { ...many(900, 1000), a: 1 }), []);
    const bounds = { maxRemovedPercent: 50, maxGrowthPercent: 100 };
    assert.deepEqual(rules({ a: 10 }, { a: 20 }, bounds), []);
    assert.deepEqual(rules({ a: 10 }, { a: 21 }, bounds), ['bytes-added']);
    assert.deepEqual(rules({ a: 10 }, { a: 8, b: 1, c: 1 }, bounds), ['files-added']);
  });

  it('permits any growth of a bundle without bytes or files', () => {
    const bounds = { maxRemovedPercent: 0, maxGrowthPercent: 0 };
    assert.deepEqual(rules({}, { a: 10 }, bounds), []);
    assert.deepEqual(rules({ a: 0 }, { a: 10 }, bounds), []);
    assert.deepEqual(rules({ a: 0 }, { a: 0 }, bounds), []);
    assert.deepEqual(rules({}, {}, bounds), []);
  });

  it('never shows an excess as the bound that it exceeds', () => {
    const before = tree({ a: 1_000_000 });
    const [excess] = excessOfChange(measureChange(before, tree({ a: 499_999 })), defaults);
    assert.equal(excess?.actual, '500.0 kB of 1.0 MB removed (50.1%)');
    assert.equal(excess?.expected, 'at most 50% of 1.0 MB removed');
  });
});

const sizes = fc.dictionary(
  fc.constantFrom(...'abcdefgh'),
  fc.oneof(fc.constant(0), fc.nat(3), fc.integer({ min: 990, max: 1010 }), fc.nat(1e9)),
);
const percent = fc.oneof(fc.constantFrom(0, 50, 100), fc.integer({ min: 0, max: 100 }));
const bounds = fc.record({
  maxRemovedPercent: percent,
  maxGrowthPercent: fc.option(fc.nat(1000), { nil: undefined }),
});
const sum = (tree: Sizes): number => Object.values(tree).reduce((total, size) => total + size, 0);

describe('every bound', () => {
  it('accepts an unchanged tree', () => {
    fc.assert(
      fc.property(sizes, bounds, (same, given) => {
        assert.deepEqual(rules(same, same, given), []);
      }),
    );
  });

  it('is exceeded exactly as with exact fractions', () => {
    fc.assert(
      fc.property(sizes, sizes, bounds, (before, after, given) => {
        const [files, bytes] = [Object.keys(before).length, sum(before)];
        const gone = Object.keys(before).filter((path) => !(path in after)).length;
        const found = rules(before, after, given);
        const isEmpty = bytes > 0 && sum(after) === 0;
        assert.equal(found.includes('bundle-empty'), isEmpty);
        if (isEmpty) return;
        const removed = BigInt(given.maxRemovedPercent);
        const lost = BigInt(Math.max(0, bytes - sum(after)));
        assert.equal(found.includes('files-removed'), BigInt(gone) * 100n > removed * BigInt(files));
        assert.equal(found.includes('bytes-removed'), lost * 100n > removed * BigInt(bytes));
        const emptied = Object.keys(before).some((path) => (before[path] ?? 0) > 1000 && after[path] === 0);
        assert.equal(found.includes('file-emptied'), emptied);
        const growth = given.maxGrowthPercent;
        const more = BigInt(Math.max(0, sum(after) - bytes));
        const grows = growth !== undefined && bytes > 0 && more * 100n > BigInt(growth) * BigInt(bytes);
        assert.equal(found.includes('bytes-added'), grows);
      }),
      { numRuns: 500 },
    );
  });

  it('accepts each change that a lower bound accepts', () => {
    fc.assert(
      fc.property(sizes, sizes, percent, percent, (before, after, one, other) => {
        const [narrow, wide] = [Math.min(one, other), Math.max(one, other)];
        if (rules(before, after, { maxRemovedPercent: narrow }).length > 0) return;
        assert.deepEqual(rules(before, after, { maxRemovedPercent: wide }), []);
      }),
    );
  });
});

describe('percentages', () => {
  it('are exact at sizes of a whole tree, and rounded away from the bound when they are shown', () => {
    fc.assert(
      fc.property(fc.nat(4e9), fc.integer({ min: 1, max: 4e9 }), fc.nat(1e6), (part, whole, given) => {
        const [exact, bound] = [BigInt(part) * 100n, BigInt(whole) * BigInt(given)];
        assert.equal(exceedsPercent(part, whole, given), exact > bound);
        assert.equal(fallsShortOfPercent(part, whole, given), exact < bound);
        if (exact > bound) assert.ok(Number.parseFloat(percentAbove(part, whole)) > given);
        if (exact < bound) assert.ok(Number.parseFloat(percentBelow(part, whole)) < given);
      }),
    );
  });
});
