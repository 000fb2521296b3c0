import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { beginPace, judgePace } from '../../../../src/platform/serve/pace-rules.js';
import { defaultServerLimits } from '../../../../src/platform/serve/server-limits.js';

const checkEveryMs = 5000;

/** @param takenBy bytes that the client read after so many seconds. @returns the seconds until the client was too slow, if it was */
function endedAfter(takenBy: (seconds: number) => number, hours = 2): number | undefined {
  let pace = beginPace(takenBy(0));
  for (let seconds = 5; seconds <= hours * 3600; seconds += 5) {
    const verdict = judgePace(pace, takenBy(seconds), checkEveryMs, defaultServerLimits);
    if (verdict.kind === 'too-slow') return seconds;
    pace = verdict.pace;
  }
  return undefined;
}

const inLumps =
  (bytesPerSecond: number, lumpBytes: number) =>
  (seconds: number): number =>
    Math.floor((seconds * bytesPerSecond) / lumpBytes) * lumpBytes;

describe('the pace of an answer', () => {
  it('is too slow after one idle timeout without a byte, and not only after two', () => {
    assert.equal(
      endedAfter(() => 0),
      60,
    );
    // The bytes that the kernel buffers at first do not show that the client reads.
    assert.equal(
      endedAfter((seconds) => (seconds < 5 ? 0 : 2_000_000)),
      65,
    );
  });

  it('is too slow after a window with one byte before each idle timeout', () => {
    assert.equal(
      endedAfter((seconds) => Math.floor(seconds / 55)),
      300,
    );
    assert.equal(endedAfter(inLumps(1100, 64_000)), 300);
  });

  it('is too slow in a later window too, however fast the first one was', () => {
    assert.equal(
      endedAfter((seconds) =>
        seconds <= 400 ? seconds * 1_000_000 : 400_000_000 + Math.floor(seconds / 55),
      ),
      900,
    );
  });

  // The kernel reports the bytes that a client read in chunks; the faster the link, the larger the chunks.
  for (const [link, bytesPerSecond, lumpBytes] of [
    ['GPRS', 4000, 64_000],
    ['GPRS with much in the kernel', 4000, 200_000],
    ['EDGE', 15_000, 400_000],
    ['a mobile link', 100_000, 1_000_000],
  ] as const) {
    it(`is accepted for ${link}`, () => {
      assert.equal(endedAfter(inLumps(bytesPerSecond, lumpBytes)), undefined);
    });
  }

  it('is accepted for a client without a connection for 50 s of each three minutes', () => {
    const away = 50;
    assert.equal(
      endedAfter(
        (seconds) =>
          (Math.floor(seconds / 180) * (180 - away) + Math.min(seconds % 180, 180 - away)) * 10_000,
      ),
      undefined,
    );
  });
});
