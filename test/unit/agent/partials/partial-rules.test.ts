import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type FoundPartial,
  isOwnPartial,
  maxPartials,
  type PartialFacts,
  partialRetentionMs,
  partialsToDrop,
} from '../../../../src/agent/partials/partial-rules.js';

const nowMs = 1_800_000_000_000;
const dayMs = 86_400_000;

function partial(name: string, ageMs: number, sizeBytes = 10): FoundPartial {
  return { name, sizeBytes, modifiedMs: nowMs - ageMs };
}

describe('a partial', () => {
  const ours: PartialFacts = { mode: 0o100600, nlink: 1, uid: 7, size: 5, isFile: () => true };

  it('is continued if only this user can have written it', () => {
    assert.equal(isOwnPartial(ours, 7), true);
  });

  const strange: Readonly<Record<string, Partial<PartialFacts>>> = {
    'no file': { isFile: () => false },
    'of another user': { uid: 0 },
    'with a second name': { nlink: 2 },
    'that its group may read': { mode: 0o100640 },
    'that others may write': { mode: 0o100602 },
    'that runs as its owner': { mode: 0o104600 },
    'closed to all': { mode: 0o100000 },
    'without a byte': { size: 0 },
  };
  for (const [what, facts] of Object.entries(strange)) {
    it(`${what} is not continued`, () => assert.equal(isOwnPartial({ ...ours, ...facts }, 7), false));
  }
});

describe('partials', () => {
  const drop = (found: readonly FoundPartial[], maxBytes = 1000): string[] =>
    partialsToDrop(found, { nowMs, maxBytes });

  it('are kept for a day after their last byte, and no longer', () => {
    assert.equal(partialRetentionMs, dayMs);
    assert.deepEqual(drop([partial('a', dayMs - 1), partial('b', dayMs)]), ['b']);
  });

  it('with a time in the future are removed, because they would never expire', () => {
    assert.deepEqual(drop([partial('a', -1000), partial('b', -dayMs)]), ['b']);
  });

  it('are bounded in number, the oldest first', () => {
    const found = Array.from({ length: maxPartials + 2 }, (_, index) => partial(`${index}`, index * 1000));
    assert.deepEqual(drop(found.reverse()), ['8', '9']);
  });

  it('are bounded in bytes, except for the newest one', () => {
    const found = [partial('old', 3000, 300), partial('middle', 2000, 800), partial('new', 1000, 700)];
    assert.deepEqual(drop(found), ['middle']);
    assert.deepEqual(drop([partial('huge', 1, 5000), partial('small', 2, 1)]), ['small']);
  });
});
