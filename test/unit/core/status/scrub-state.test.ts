import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  chooseStartScanDepth,
  computeScrubDelayMs,
  type DamageFound,
  formatDamage,
  formatDamageSummary,
  maxRecordedDamage,
  recordEmptyScan,
  recordScan,
  type ScrubState,
  type StartScanFacts,
  selectCurrentDamage,
} from '../../../../src/core/status/scrub-state.js';

const file: DamageFound = {
  generation: 7,
  part: 'tree',
  kind: 'changed',
  bundle: 'dns-edge',
  tree: '41-2c26b46b68ff.7',
  path: 'views/a.rpz',
};
const link: DamageFound = { generation: 7, part: 'generation', kind: 'extra', path: 'notes' };
const state = (more: Partial<ScrubState> = {}): ScrubState => ({
  ...recordScan(undefined, { atMs: 1_000_000, damage: [], repair: 'none' }),
  ...more,
});

describe('the texts for damage', () => {
  const table: readonly [Partial<DamageFound>, string][] = [
    [{}, 'dns-edge: views/a.rpz changed on disk'],
    [{ kind: 'missing', path: '.' }, 'dns-edge: its tree is missing'],
    [{ kind: 'extra' }, 'dns-edge: views/a.rpz does not belong there'],
    [{ kind: 'mode' }, 'dns-edge: views/a.rpz has a different mode'],
    [{ kind: 'owner' }, 'dns-edge: views/a.rpz has a different owner'],
    [{ kind: 'unreadable' }, 'dns-edge: views/a.rpz cannot be read'],
    [{ part: 'archive', path: '.' }, 'dns-edge: the kept archive changed on disk'],
    [{ part: 'generation', path: 'dns-edge' }, 'generation 7: the entry dns-edge changed on disk'],
    [{ part: 'generation', path: '.', kind: 'missing' }, 'generation 7: it is missing'],
    [{ part: 'current', path: '.', kind: 'missing' }, 'the link `current` is missing'],
  ];
  for (const [more, text] of table) it(text, () => assert.equal(formatDamage({ ...file, ...more }), text));

  it('count the damage beyond the first three', () => {
    assert.equal(
      formatDamageSummary([link, link, link, link, link]).match(/does not belong there/g)?.length,
      3,
    );
    assert.match(formatDamageSummary([link, link, link, link, link]), /; 2 more$/);
  });
});

describe('the recorded scans', () => {
  it('count scans, damage, repairs and failed repairs', () => {
    const found = { atMs: 2, damage: [file] };
    const failed = recordScan(state(), { ...found, repair: 'failed' });
    assert.deepEqual([failed.outcome, failed.failures, failed.damage], ['damaged', 1, [file]]);
    const again = recordScan(failed, { ...found, repair: 'failed' });
    const repaired = recordScan(again, { ...found, repair: 'succeeded' });
    assert.deepEqual(
      [repaired.outcome, repaired.failures, repaired.damage, repaired.found],
      ['repaired', 0, [], 1],
    );
    assert.deepEqual(repaired.counts, { looks: 4, damaged: 3, repaired: 1, failed: 2 });
    assert.equal(recordScan(repaired, { atMs: 3, damage: [], repair: 'none' }).outcome, 'intact');
  });

  it('contain a bounded list of damage', () => {
    const many = Array.from({ length: 1000 }, () => file);
    const { damage, found } = recordScan(undefined, { atMs: 1, damage: many, repair: 'none' });
    assert.deepEqual([damage.length, found], [maxRecordedDamage, 1000]);
  });

  it('name the older generation that replaced a damaged one, until a repair succeeds', () => {
    const behind = { generation: 6, text: 'gone' };
    const first = recordScan(undefined, { atMs: 1, damage: [file], repair: 'succeeded', behind });
    const intact = recordScan(first, { atMs: 2, damage: [], repair: 'none' });
    assert.deepEqual(intact.behind, behind);
    assert.equal(recordScan(intact, { atMs: 3, damage: [file], repair: 'succeeded' }).behind, undefined);
  });
});

describe('a scan of a host without an active generation', () => {
  it('records its time and is not counted', () => {
    const found = { atMs: 2, damage: [file] };
    const before = recordScan(state(), { ...found, repair: 'failed' });
    const after = recordEmptyScan(before, 3);
    assert.deepEqual([after.atMs, after.damage, after.failures, after.outcome], [3, [], 0, 'intact']);
    assert.deepEqual(after.counts, before.counts);
    assert.equal(recordEmptyScan(undefined, 3).counts.looks, 0);
  });
});

describe('current damage', () => {
  const known = state({ outcome: 'damaged', damage: [file, link] });

  it('is the damage of the active trees and links', () => {
    const trees = new Map([['dns-edge', '41-2c26b46b68ff.7']]);
    assert.deepEqual(selectCurrentDamage(known, { generation: 7, trees }), [file, link]);
    assert.deepEqual(
      selectCurrentDamage(known, { generation: 8, trees }),
      [file],
      'another link, the same tree',
    );
    assert.deepEqual(selectCurrentDamage(known, { generation: 8, trees: new Map() }), []);
    assert.deepEqual(selectCurrentDamage(undefined, { generation: 7, trees }), []);
    // A damaged link of a bundle belongs to the generation, with any tree of the bundle.
    const entry: DamageFound = { ...link, kind: 'missing', bundle: 'dns-edge', path: 'dns-edge' };
    const one = state({ damage: [entry] });
    assert.deepEqual(selectCurrentDamage(one, { generation: 7, trees }), [entry]);
    assert.deepEqual(selectCurrentDamage(one, { generation: 8, trees }), []);
  });
});

describe('the time of the next scrub', () => {
  const everyMs = 3_600_000;

  it('is an interval after the last one, also after a restart', () => {
    assert.equal(computeScrubDelayMs(undefined, { everyMs, nowMs: 0 }), everyMs);
    assert.equal(computeScrubDelayMs(state(), { everyMs, nowMs: 1_000_000 + 600_000 }), everyMs - 600_000);
  });

  it('is ten seconds after the start, if the scrub is overdue', () => {
    assert.equal(computeScrubDelayMs(state(), { everyMs, nowMs: 1_000_000 + 10 * everyMs }), 10_000);
  });

  it('backs off after failed repairs, up to the interval', () => {
    const after = (failures: number): number =>
      computeScrubDelayMs(state({ failures }), { everyMs, nowMs: 1_000_000 });
    assert.deepEqual([1, 2, 3, 6, 7, 50].map(after), [60_000, 120_000, 240_000, 1_920_000, everyMs, everyMs]);
  });

  it('is within an interval for any clock', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.nat(),
        fc.integer({ min: 10_000, max: 2 ** 31 }),
        fc.nat(60),
        (atMs, nowMs, every, failures) => {
          const delay = computeScrubDelayMs(state({ atMs, failures }), { everyMs: every, nowMs });
          assert.ok(delay > 0 && delay <= every);
        },
      ),
    );
  });
});

describe('the depth of the scan at a start', () => {
  const upToDate: StartScanFacts = {
    ended: 'clean',
    isReadSinceBoot: true,
    hasLaterScrub: true,
    isNotificationPending: false,
    state: state(),
    everyMs: 60_000,
    nowMs: 1_030_000,
  };
  const table: readonly (readonly [string, Partial<StartScanFacts>, string])[] = [
    ['a pull soon after a full scan without damage', {}, 'places'],
    ['the last moment before the next scan', { nowMs: 1_059_999 }, 'places'],
    ['the moment of the next scan', { nowMs: 1_060_000 }, 'digests'],
    ['a clock that was set back', { nowMs: 999_999 }, 'digests'],
    ['no earlier scan', { state: undefined }, 'digests'],
    ['recorded damage', { state: state({ damage: [file] }) }, 'digests'],
    ['an unclean end', { ended: 'unclean' }, 'digests'],
    ['a boot', { isReadSinceBoot: false }, 'digests'],
    ['an unclean end, and no later scrub', { ended: 'unclean', hasLaterScrub: false }, 'digests'],
    ['a pending worker or loader', { isNotificationPending: true }, 'sizes'],
    [
      'a pending worker at the time of the next scan',
      { isNotificationPending: true, nowMs: 2_000_000 },
      'digests',
    ],
    ['scrubs that are switched off', { everyMs: undefined }, 'sizes'],
    ['a restarted agent, or a command without a later scrub', { hasLaterScrub: false }, 'sizes'],
  ];
  for (const [name, facts, depth] of table) {
    it(`${name}: ${depth}`, () => assert.equal(chooseStartScanDepth({ ...upToDate, ...facts }), depth));
  }

  it('is reduced to places only after a clean end, a full scan in this boot, and a recent scan without damage', () => {
    const facts = fc.record({
      ended: fc.constantFrom('clean' as const, 'unclean' as const),
      isReadSinceBoot: fc.boolean(),
      hasLaterScrub: fc.boolean(),
      isNotificationPending: fc.boolean(),
      state: fc.constantFrom(undefined, state(), state({ damage: [link] })),
      everyMs: fc.constantFrom(undefined, 10_000, 60_000),
      nowMs: fc.integer({ min: 900_000, max: 1_200_000 }),
    });
    fc.assert(
      fc.property(facts, (one) => {
        if (chooseStartScanDepth(one) !== 'places') return;
        const { state: known, everyMs = 0, nowMs } = one;
        assert.ok(known !== undefined && known.damage.length === 0 && nowMs - known.atMs < everyMs);
        assert.deepEqual([one.ended, one.isReadSinceBoot, one.hasLaterScrub], ['clean', true, true]);
      }),
    );
  });
});
