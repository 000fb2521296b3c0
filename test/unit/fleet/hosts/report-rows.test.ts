// What of a host's rows is gone, was replaced, or is new: what numbers are moved by.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rowDifference } from '../../../../src/fleet/hosts/report-rows.js';

const keyOf = ({ key }: { readonly key: string }): string => key;

describe('the difference of rows', () => {
  it('has what is gone, what was replaced by what, and what is new, and nothing that is the same', () => {
    const before = ['same', 'other', 'gone'].map((key) => ({ key, value: 1 }));
    const after = [
      { key: 'same', value: 1 },
      { key: 'other', value: 2 },
      { key: 'new', value: 1 },
    ];
    assert.deepEqual(rowDifference(before, after, keyOf), {
      gone: [{ key: 'gone', value: 1 }],
      replaced: [{ key: 'other', value: 1 }],
      changed: [
        { key: 'other', value: 2 },
        { key: 'new', value: 1 },
      ],
    });
  });

  it('is nothing of nothing, and all of the first', () => {
    assert.deepEqual(rowDifference([], [], keyOf), { gone: [], replaced: [], changed: [] });
    const first = [{ key: 'a' }];
    assert.deepEqual(rowDifference([], first, keyOf), { gone: [], replaced: [], changed: first });
  });
});
