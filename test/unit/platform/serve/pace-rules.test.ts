import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { beginPace, judgePace } from '../../../../src/platform/serve/pace-rules.js';
import { defaultServerLimits } from '../../../../src/platform/serve/server-limits.js';

const lookEveryMs = 5000;

/** @param takenBy how much was taken after so many seconds. @returns the seconds after which it was ended, if it was */
function endedAfter(takenBy: (seconds: number) => number, hours = 2): number | undefined {
  let pace = beginPace(takenBy(0));
  for (let seconds = 5; seconds <= hours * 3600; seconds += 5) {
    const verdict = judgePace(pace, takenBy(seconds), lookEveryMs, defaultServerLimits);
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
  it('ends after one idle time when nothing is taken, and not after two', () => {
    assert.equal(
      endedAfter(() => 0),
      60,
    );
    // What the kernel took at first is no life of the client.
    assert.equal(
      endedAfter((seconds) => (seconds < 5 ? 0 : 2_000_000)),
      65,
    );
  });

  it('ends after a window when one byte is taken before each end of the idle time', () => {
    assert.equal(
      endedAfter((seconds) => Math.floor(seconds / 55)),
      300,
    );
    assert.equal(endedAfter(inLumps(1100, 64_000)), 300);
  });

  it('ends in a later window too, however fast the first one was', () => {
    assert.equal(
      endedAfter((seconds) =>
        seconds <= 400 ? seconds * 1_000_000 : 400_000_000 + Math.floor(seconds / 55),
      ),
      900,
    );
  });

  // The kernel tells of what a client took in pieces, the larger the faster its link was.
  for (const [link, bytesPerSecond, lumpBytes] of [
    ['GPRS', 4000, 64_000],
    ['GPRS with much in the kernel', 4000, 200_000],
    ['EDGE', 15_000, 400_000],
    ['a mobile link', 100_000, 1_000_000],
  ] as const) {
    it(`goes on for ${link}`, () => {
      assert.equal(endedAfter(inLumps(bytesPerSecond, lumpBytes)), undefined);
    });
  }

  it('goes on for who is in a tunnel for 50 s of each three minutes', () => {
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
