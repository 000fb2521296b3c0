import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requireMinimumThroughput } from '../../../../src/trust/sources/minimum-throughput.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';

/** What comes: so many bytes after so long. */
type Piece = readonly [bytes: number, afterMs: number];

async function* arriving(pieces: readonly Piece[], clock: FakeClock): AsyncGenerator<Buffer> {
  for (const [bytes, afterMs] of pieces) {
    await clock.advance(afterMs);
    yield Buffer.alloc(bytes);
  }
}

/** @returns the bytes that were handed on, by a reader who takes so long for each piece */
async function take(pieces: readonly Piece[], readMs = 0): Promise<number> {
  const clock = fakeClock();
  let all = 0;
  for await (const chunk of requireMinimumThroughput(arriving(pieces, clock), clock, 'https://a/x')) {
    all += chunk.length;
    await clock.advance(readMs);
  }
  return all;
}

const times = (count: number, piece: Piece): Piece[] => Array.from({ length: count }, () => piece);

describe('the minimum throughput of a body', () => {
  it('is 1 kB a second, over a minute', async () => {
    assert.equal(await take(times(300, [10_000, 10_000])), 3_000_000);
    const error = await rejectsCode('DOWNLOAD_TIMEOUT', take(times(300, [9_999, 10_000])));
    assert.deepEqual(error.facts, { url: 'https://a/x', waitedMs: 60_000, expected: 60_000, actual: 59_994 });
  });

  it('ends a server that sends single bytes', async () => {
    const error = await rejectsCode('DOWNLOAD_TIMEOUT', take(times(2000, [1, 1000])));
    assert.equal(error.facts['actual'], 60);
  });

  it('is checked for each minute alone: earlier bytes do not count', async () => {
    const error = await rejectsCode(
      'DOWNLOAD_TIMEOUT',
      take([[50_000_000, 60_000], ...times(100, [1, 1000])]),
    );
    assert.deepEqual([error.facts['waitedMs'], error.facts['actual']], [60_000, 60]);
  });

  it('is not checked before a minute has passed', async () => {
    assert.equal(await take(times(59, [1, 1000])), 59);
  });

  it('does not count the time of the reader', async () => {
    assert.equal(await take(times(100, [1, 10]), 60_000), 100);
  });
});
