// Which delta a host takes, with what it keeps already: a row that is bounded in its length and in its bytes.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import type { DeltaInfo } from '../../../../src/core/release/deltas.js';
import { deltaToTake, maxKeptDeltas } from '../../../../src/core/release/kept-delta-rules.js';

const digest = (letter: string): Digest => digestFromHex(letter.repeat(64)) as Digest;
const delta = (from: string, length: number): DeltaInfo => ({
  from: digest(from),
  digest: digest('d'),
  length,
});
const kept = (...lengths: number[]) => ({ deltas: lengths.map((length) => ({ length })) });

function take(deltas: readonly DeltaInfo[] | undefined, ...lengths: number[]): number | undefined {
  return deltaToTake(deltas, { from: digest('a'), kept: kept(...lengths), archiveBytes: 100 })?.length;
}

describe('the delta that a host fetches', () => {
  it('starts from its base, and from no other', () => {
    assert.equal(take([delta('b', 5), delta('a', 7)]), 7);
    assert.equal(take([delta('b', 5)]), undefined);
    assert.equal(take(undefined), undefined);
  });

  it('is smaller than the archive', () => {
    assert.equal(take([delta('a', 99)]), 99);
    assert.equal(take([delta('a', 100)]), undefined);
  });

  it('has, with those before it, at most the bytes of the archive', () => {
    assert.equal(take([delta('a', 40)], 30, 30), 40);
    assert.equal(take([delta('a', 41)], 30, 30), undefined);
  });

  it('is the last of a bounded chain', () => {
    const full = Array.from({ length: maxKeptDeltas }, () => 1);
    assert.equal(take([delta('a', 1)], ...full.slice(1)), 1);
    assert.equal(take([delta('a', 1)], ...full), undefined);
  });
});
