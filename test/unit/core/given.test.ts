import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { given } from '../../../src/core/given.js';

describe('given', () => {
  it('leaves out what is undefined, and nothing else', () => {
    const members = given({ a: undefined, b: 0, c: '', d: false, e: null });
    assert.deepEqual(members, { b: 0, c: '', d: false, e: null });
    assert.equal('a' in members, false);
  });
});
