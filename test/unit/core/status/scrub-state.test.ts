import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  afterLook,
  afterNothing,
  type DamageFound,
  damageSummary,
  damageText,
  depthOfStart,
  maxKeptDamage,
  nextLookMs,
  type ScrubState,
  type StartFacts,
  standingDamage,
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
  ...afterLook(undefined, { atMs: 1_000_000, damage: [], repair: 'none' }),
  ...more,
});

describe('the words for damage', () => {
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
  for (const [more, text] of table) it(text, () => assert.equal(damageText({ ...file, ...more }), text));

  it('say how many more there are', () => {
    assert.equal(damageSummary([link, link, link, link, link]).match(/does not belong there/g)?.length, 3);
    assert.match(damageSummary([link, link, link, link, link]), /; 2 more$/);
  });
});

describe('the memory of looks', () => {
  it('counts them, and what was found, mended and not', () => {
    const found = { atMs: 2, damage: [file] };
    const failed = afterLook(state(), { ...found, repair: 'failed' });
    assert.deepEqual([failed.outcome, failed.failures, failed.damage], ['damaged', 1, [file]]);
    const again = afterLook(failed, { ...found, repair: 'failed' });
    const mended = afterLook(again, { ...found, repair: 'succeeded' });
    assert.deepEqual([mended.outcome, mended.failures, mended.damage, mended.found], ['repaired', 0, [], 1]);
    assert.deepEqual(mended.counts, { looks: 4, damaged: 3, repaired: 1, failed: 2 });
    assert.equal(afterLook(mended, { atMs: 3, damage: [], repair: 'none' }).outcome, 'intact');
  });

  it('keeps a bounded list', () => {
    const many = Array.from({ length: 1000 }, () => file);
    const { damage, found } = afterLook(undefined, { atMs: 1, damage: many, repair: 'none' });
    assert.deepEqual([damage.length, found], [maxKeptDamage, 1000]);
  });

  it('knows that an older generation took over, until a repair does better', () => {
    const behind = { generation: 6, text: 'gone' };
    const first = afterLook(undefined, { atMs: 1, damage: [file], repair: 'succeeded', behind });
    const whole = afterLook(first, { atMs: 2, damage: [], repair: 'none' });
    assert.deepEqual(whole.behind, behind);
    assert.equal(afterLook(whole, { atMs: 3, damage: [file], repair: 'succeeded' }).behind, undefined);
  });
});

describe('a look at a host on which nothing is active', () => {
  it('is when the age of the next look is counted from, and no look in the counts', () => {
    const found = { atMs: 2, damage: [file] };
    const before = afterLook(state(), { ...found, repair: 'failed' });
    const after = afterNothing(before, 3);
    assert.deepEqual([after.atMs, after.damage, after.failures, after.outcome], [3, [], 0, 'intact']);
    assert.deepEqual(after.counts, before.counts);
    assert.equal(afterNothing(undefined, 3).counts.looks, 0);
  });
});

describe('damage that stands', () => {
  const known = state({ outcome: 'damaged', damage: [file, link] });

  it('is that of the trees and links in use', () => {
    const trees = new Map([['dns-edge', '41-2c26b46b68ff.7']]);
    assert.deepEqual(standingDamage(known, { generation: 7, trees }), [file, link]);
    assert.deepEqual(standingDamage(known, { generation: 8, trees }), [file], 'another link, the same tree');
    assert.deepEqual(standingDamage(known, { generation: 8, trees: new Map() }), []);
    assert.deepEqual(standingDamage(undefined, { generation: 7, trees }), []);
    // A link of a bundle is the generation's, whatever tree the bundle has.
    const entry: DamageFound = { ...link, kind: 'missing', bundle: 'dns-edge', path: 'dns-edge' };
    const one = state({ damage: [entry] });
    assert.deepEqual(standingDamage(one, { generation: 7, trees }), [entry]);
    assert.deepEqual(standingDamage(one, { generation: 8, trees }), []);
  });
});

describe('the time of the next look', () => {
  const everyMs = 3_600_000;

  it('is an interval after the last one, over a restart too', () => {
    assert.equal(nextLookMs(undefined, { everyMs, nowMs: 0 }), everyMs);
    assert.equal(nextLookMs(state(), { everyMs, nowMs: 1_000_000 + 600_000 }), everyMs - 600_000);
  });

  it('is soon, but not at once, when it is overdue', () => {
    assert.equal(nextLookMs(state(), { everyMs, nowMs: 1_000_000 + 10 * everyMs }), 10_000);
  });

  it('comes sooner after a repair that failed, later and later, and never later than the interval', () => {
    const after = (failures: number): number =>
      nextLookMs(state({ failures }), { everyMs, nowMs: 1_000_000 });
    assert.deepEqual([1, 2, 3, 6, 7, 50].map(after), [60_000, 120_000, 240_000, 1_920_000, everyMs, everyMs]);
  });

  it('is within an interval whatever the clock does', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.nat(),
        fc.integer({ min: 10_000, max: 2 ** 31 }),
        fc.nat(60),
        (atMs, nowMs, every, failures) => {
          const delay = nextLookMs(state({ atMs, failures }), { everyMs: every, nowMs });
          assert.ok(delay > 0 && delay <= every);
        },
      ),
    );
  });
});

describe('how much a start looks at', () => {
  const rests: StartFacts = {
    ended: 'clean',
    readSinceBoot: 'yes',
    looksLater: 'pull',
    isOwed: 'no',
    state: state(),
    everyMs: 60_000,
    nowMs: 1_030_000,
  };
  const table: readonly (readonly [string, Partial<StartFacts>, string])[] = [
    ['a pull soon after a full look that found nothing', {}, 'places'],
    ['the last moment before the next is due', { nowMs: 1_059_999 }, 'places'],
    ['the moment at which it is due', { nowMs: 1_060_000 }, 'digests'],
    ['a clock that was set back', { nowMs: 999_999 }, 'digests'],
    ['no look before', { state: undefined }, 'digests'],
    ['damage that is known', { state: state({ damage: [file] }) }, 'digests'],
    ['an unclean end', { ended: 'unclean' }, 'digests'],
    ['a boot', { readSinceBoot: 'no' }, 'digests'],
    ['an unclean end of an agent', { ended: 'unclean', looksLater: 'nobody' }, 'digests'],
    ['a worker or a loader that is about to read', { isOwed: 'yes' }, 'sizes'],
    ['one, when a look is due', { isOwed: 'yes', nowMs: 2_000_000 }, 'digests'],
    ['no look wanted in between', { everyMs: undefined }, 'sizes'],
    [
      'an agent that was restarted, or a command behind which nobody looks',
      { looksLater: 'nobody' },
      'sizes',
    ],
  ];
  for (const [name, facts, depth] of table) {
    it(`${name}: ${depth}`, () => assert.equal(depthOfStart({ ...rests, ...facts }), depth));
  }

  it('rests on nothing but a clean end in a boot that was read, and a look younger than its time', () => {
    const facts = fc.record({
      ended: fc.constantFrom('clean' as const, 'unclean' as const),
      readSinceBoot: fc.constantFrom('yes' as const, 'no' as const),
      looksLater: fc.constantFrom('pull' as const, 'nobody' as const),
      isOwed: fc.constantFrom('yes' as const, 'no' as const),
      state: fc.constantFrom(undefined, state(), state({ damage: [link] })),
      everyMs: fc.constantFrom(undefined, 10_000, 60_000),
      nowMs: fc.integer({ min: 900_000, max: 1_200_000 }),
    });
    fc.assert(
      fc.property(facts, (one) => {
        if (depthOfStart(one) !== 'places') return;
        const { state: known, everyMs = 0, nowMs } = one;
        assert.ok(known !== undefined && known.damage.length === 0 && nowMs - known.atMs < everyMs);
        assert.deepEqual([one.ended, one.readSinceBoot, one.looksLater], ['clean', 'yes', 'pull']);
      }),
    );
  });
});
