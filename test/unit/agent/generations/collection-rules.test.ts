// Tables of the collection rules: directories on disk, rules and generation users, and the resulting plan.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type CollectionFacts,
  type CollectionPlan,
  type KeepRules,
  planGenerationCollection,
} from '../../../../src/agent/generations/collection-rules.js';
import type { CollectableDirectory } from '../../../../src/core/status/mount-table.js';

/** Generation n has tree `access/n-abc.n` and, never changed, `dns/1-abc.1`; each was left at its number. */
function generations(count: number): CollectionFacts {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  return {
    generations: numbers.map((number) => ({
      number,
      trees: [`access/${number}-abc.${number}`, 'dns/1-abc.1'],
      leftAtMs: number,
    })),
    trees: [
      ...numbers.map((number) => ({ name: `access/${number}-abc.${number}`, madeAtMs: number })),
      { name: 'dns/1-abc.1', madeAtMs: 1 },
    ],
    releases: [...numbers.map((number) => `access/${number}-abc`), 'dns/1-abc'],
  };
}

function plan(facts: CollectionFacts, rules: Partial<KeepRules> = {}): CollectionPlan {
  const none = { named: new Set<number>(), settled: new Set<string>() };
  return planGenerationCollection(facts, { ...none, newest: 1, graceMs: 0, nowMs: 1000, ...rules });
}

const generation = (number: number): CollectableDirectory => ({ kind: 'generation', generation: number });
const tree = (bundle: string, name: string): CollectableDirectory => ({ kind: 'tree', bundle, tree: name });

describe('planGenerationCollection', () => {
  it('removes a generation that is neither new nor named, with its trees and releases', () => {
    const { heldBack: _, ...parts } = plan(generations(4), { named: new Set([2]) });
    assert.deepEqual(parts, {
      generations: [1, 3],
      trees: ['access/1-abc.1', 'access/3-abc.3'],
      releases: ['access/1-abc', 'access/3-abc'],
    });
  });

  it('removes nothing on an empty host', () => {
    const nothing = { generations: [], trees: [], releases: [] };
    assert.deepEqual(plan(nothing), { ...nothing, heldBack: [] });
  });

  it('waits for the grace period of each, and returns when the first one ends', () => {
    const young = plan(generations(4), { graceMs: 100, nowMs: 102 });
    assert.deepEqual([young.generations, young.nextDueMs], [[1, 2], 103]);
    assert.deepEqual(young.trees, ['access/1-abc.1', 'access/2-abc.2']);
    const younger = plan(generations(4), { graceMs: 100, nowMs: 101 });
    assert.deepEqual([younger.generations, younger.nextDueMs], [[1], 102], 'the first of two');
    // The last one never falls due: it is the newest.
    assert.equal(plan(generations(4), { graceMs: 100, nowMs: 103 }).nextDueMs, undefined);
    const named = plan(generations(4), { graceMs: 100, nowMs: 102, named: new Set([3]) });
    assert.equal(named.nextDueMs, undefined, 'nor does one that is named');
  });

  it('keeps the newest tree of a settled release, by its number', () => {
    const trees = [10, 2].map((number) => ({ name: `access/1-abc.${number}`, madeAtMs: 1 }));
    const facts = { generations: [], trees, releases: ['access/1-abc'] };
    const { trees: gone, releases } = plan(facts, { settled: new Set(['access/1-abc']) });
    assert.deepEqual([gone, releases], [['access/1-abc.2'], []]);
  });

  it('removes a tree with its last generation, however recent the change time of the tree is', () => {
    const facts = generations(2);
    const trees = facts.trees.map((one) => ({ ...one, madeAtMs: 1000 }));
    const late = plan({ ...facts, trees }, { graceMs: 100, nowMs: 1000 });
    assert.deepEqual([late.generations, late.trees, late.nextDueMs], [[1], ['access/1-abc.1'], undefined]);
  });

  it('keeps the release of a retained link with a lost tree, because the repair needs it', () => {
    const facts = generations(2);
    const without = { ...facts, trees: facts.trees.filter((one) => one.name !== 'access/2-abc.2') };
    assert.deepEqual(plan(without).releases, ['access/1-abc']);
  });

  it('removes a tree and a release without a generation, the tree after its grace period', () => {
    const facts = generations(1);
    const orphan = { name: 'access/9-abc.9', madeAtMs: 950 };
    const more = { ...facts, trees: [...facts.trees, orphan], releases: [...facts.releases, 'access/9-abc'] };
    const young = plan(more, { graceMs: 100 });
    assert.deepEqual([young.trees, young.releases, young.nextDueMs], [[], [], 1050]);
    const old = plan(more, { graceMs: 100, nowMs: 1050 });
    assert.deepEqual([old.trees, old.releases], [['access/9-abc.9'], ['access/9-abc']]);
  });
});

describe('planGenerationCollection with generation users', () => {
  it('keeps a used generation with all its trees', () => {
    const held = plan(generations(4), { held: [generation(2)] });
    assert.deepEqual([held.generations, held.heldBack], [[1, 3], [2]]);
    assert.deepEqual(held.trees, ['access/1-abc.1', 'access/3-abc.3']);
    assert.deepEqual(held.releases, ['access/1-abc', 'access/3-abc']);
  });

  it('lists no generation as held back that the rules retain', () => {
    assert.deepEqual(plan(generations(4), { held: [generation(4)] }).heldBack, []);
  });

  it('keeps the generation of a used tree', () => {
    assert.deepEqual(plan(generations(4), { held: [tree('access', '2-abc.2')] }).heldBack, [2]);
  });

  it('keeps no further generation for a tree that the active generation has too', () => {
    const held = plan(generations(4), { held: [tree('dns', '1-abc.1')] });
    assert.deepEqual([held.generations, held.heldBack], [[1, 2, 3], []]);
  });

  it('keeps only the newest of the old generations with a used tree', () => {
    const facts = generations(4);
    const [last] = facts.generations.slice(-1);
    const changed = { ...facts.generations[3]!, trees: ['access/4-abc.4'] };
    assert.equal(last?.number, changed.number);
    const now = { ...facts, generations: [...facts.generations.slice(0, 3), changed] };
    const held = [tree('dns', '1-abc.1')];
    assert.deepEqual(plan(now, { held }).heldBack, [3]);
    assert.deepEqual(plan(now, { held: [...held, generation(1)] }).heldBack, [1], 'which is kept anyway');
    assert.deepEqual(plan(now, {}).trees.includes('dns/1-abc.1'), true);
  });

  it('keeps a used tree without a generation', () => {
    const facts = generations(1);
    const more = { ...facts, trees: [...facts.trees, { name: 'access/9-abc.9', madeAtMs: 9 }] };
    const held = plan(
      { ...more, releases: [...more.releases, 'access/9-abc'] },
      {
        held: [tree('access', '9-abc.9')],
      },
    );
    assert.deepEqual([held.trees, held.releases, held.heldBack], [[], [], ['access/9-abc.9']]);
  });

  it('ignores used directories that do not exist', () => {
    const held = [generation(77), tree('access', '77-abc.77'), tree('other', 'x')];
    assert.deepEqual(plan(generations(3), { held }), plan(generations(3)));
  });

  it('never removes a named, new, young or used generation, nor its trees and releases', () => {
    const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 8 }));
    const rules = fc.record({
      named: numbers.map((list) => new Set(list)),
      newest: fc.integer({ min: 1, max: 8 }),
      graceMs: fc.integer({ min: 0, max: 10 }),
      nowMs: fc.constant(10),
      settled: fc
        .array(fc.integer({ min: 1, max: 8 }))
        .map((all) => new Set(all.map((number) => `access/${number}-abc`))),
      held: numbers.map((list) => list.map((number) => generation(number))),
    });
    fc.assert(
      fc.property(rules, (one) => {
        const facts = generations(8);
        const { generations: gone, trees, releases } = planGenerationCollection(facts, one);
        const kept = facts.generations.filter(({ number }) => !gone.includes(number));
        for (const release of one.settled) {
          assert.ok(!releases.includes(release));
          assert.ok(!trees.some((name) => name.startsWith(`${release}.`)));
        }
        for (const { number } of facts.generations.slice(-one.newest)) assert.ok(!gone.includes(number));
        for (const number of gone) {
          assert.ok(!one.named.has(number) && 10 - number >= one.graceMs);
          assert.ok(!one.held.some((held) => held.kind === 'generation' && held.generation === number));
        }
        for (const name of kept.flatMap((generationKept) => generationKept.trees)) {
          assert.ok(!trees.includes(name) && !releases.includes(name.replace(/\.\d+$/, '')));
        }
      }),
    );
  });
});
