// Removed, replaced and new rows of a host, by which counters change.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rowDifference } from '../../../../src/fleet/hosts/report-rows.js';

const keyOf = ({ key }: { readonly key: string }): string => key;

describe('the difference of rows', () => {
  it('has removed, replaced and new rows, and no unchanged ones', () => {
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

  it('is empty for no rows, and has all rows at first', () => {
    assert.deepEqual(rowDifference([], [], keyOf), { gone: [], replaced: [], changed: [] });
    const first = [{ key: 'a' }];
    assert.deepEqual(rowDifference([], first, keyOf), { gone: [], replaced: [], changed: first });
  });
});
