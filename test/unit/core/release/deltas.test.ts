// Which delta a host takes: one from what it has, and only where that is less than the archive.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import { usableDelta } from '../../../../src/core/release/deltas.js';

const digest = (letter: string): Digest => digestFromHex(letter.repeat(64)) as Digest;
const delta = (letter: string, length: number) => ({ from: digest(letter), length, digest: digest('f') });

describe('usableDelta', () => {
  const deltas = [delta('a', 50), delta('b', 30), delta('c', 10)];

  it('is the smallest one with an available base', () => {
    const bases = new Set([digest('a'), digest('b')]);
    assert.deepEqual(usableDelta(deltas, bases, 100), deltas[1]);
    assert.deepEqual(usableDelta(deltas, new Set([digest('a')]), 100), deltas[0]);
  });

  it('is undefined without an available base, or if none saves a byte', () => {
    assert.equal(usableDelta(deltas, new Set([digest('d')]), 100), undefined);
    assert.equal(usableDelta(deltas, new Set([digest('a')]), 50), undefined);
    assert.deepEqual(usableDelta(deltas, new Set([digest('a')]), 51), deltas[0]);
    assert.equal(usableDelta(undefined, new Set([digest('a')]), 100), undefined);
  });
});
