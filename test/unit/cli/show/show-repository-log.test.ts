import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rangesText } from '../../../../src/cli/show/show-repository-log.js';

describe('missing versions', () => {
  it('are ranges with a count, and single numbers', () => {
    assert.equal(rangesText([3, 7, 8, 9, 12]), 'v3, v7 to v9 (3), v12');
    const hundred = Array.from({ length: 100 }, (_, index) => 999_999_999_900 + index);
    assert.equal(rangesText(hundred), 'v999999999900 to v999999999999 (100)');
  });

  it('are named up to a bound', () => {
    const single = Array.from({ length: 25 }, (_, index) => 2 * index + 1);
    assert.match(rangesText(single), /^v1, v3, .*, v39 and 5 more; --json lists all$/);
  });
});
