import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sizeText } from '../../../src/core/size-text.js';

describe('an amount of bytes', () => {
  for (const [bytes, text] of [
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [1234, '1.2 kB'],
    [41e9, '41.0 GB'],
    [2.4e12, '2.4 TB'],
    [5e15, '5000.0 TB'],
  ] as const) {
    it(`is ${text} for ${bytes}`, () => assert.equal(sizeText(bytes), text));
  }
});
