import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WaitFacts } from '../../../../src/core/fleet/answers.js';
import { judgeSettledShare, judgeWait, waitExitCodes } from '../../../../src/core/fleet/wait-verdict.js';

const terms = { sharePpm: 1_000_000, withinMs: 60_000, accept: 'confirmed' } as const;
const facts = (more: Partial<WaitFacts>): WaitFacts => ({
  ...{ schema: 1, type: 'fleet.wait', atMs: 0, of: 10, confirmed: 0, notified: 0, unconfirmed: 0, silent: 0 },
  ...{ refused: 0, refusedHosts: [], excepted: 0, later: 0, elsewhere: 0 },
  ...more,
});
const outcome = (
  more: Partial<WaitFacts>,
  of: Partial<typeof terms> | object = {},
  elapsedMs = 0,
  frozen = 10,
) => judgeWait(facts(more), { ...terms, ...of }, { frozen, elapsedMs }).outcome;

describe('the verdict of a wait', () => {
  it('has an exit code for each end', () => {
    assert.deepEqual(waitExitCodes, {
      ...{
        reached: 0,
        'time-over': 1,
        nobody: 2,
        ambiguous: 2,
        'out-of-reach': 3,
        withdrawn: 4,
        superseded: 4,
        absent: 2,
      },
    });
  });

  it('is reached when that share confirmed, and not a host earlier', () => {
    assert.equal(outcome({ confirmed: 9 }), 'waiting');
    assert.equal(outcome({ confirmed: 10 }), 'reached');
    assert.equal(outcome({ confirmed: 9 }, { sharePpm: 900_000 }), 'reached');
    assert.equal(outcome({ confirmed: 9 }, { sharePpm: 900_001 }), 'waiting');
  });

  it('needs one host at least, however small the share', () => {
    assert.equal(judgeWait(facts({}), { ...terms, sharePpm: 1 }, { frozen: 10, elapsedMs: 0 }).needed, 1);
    assert.equal(outcome({}, { sharePpm: 1 }), 'waiting');
  });

  it('counts hosts that cannot confirm in the denominator, and as done only if requested', () => {
    assert.equal(outcome({ confirmed: 6, notified: 4 }), 'waiting');
    assert.equal(outcome({ confirmed: 6, notified: 4 }, { accept: 'notified' }), 'reached');
  });

  it('is not easier after hosts left, and harder after an excepted host reports again', () => {
    assert.equal(outcome({ of: 8, confirmed: 8 }), 'waiting');
    assert.equal(outcome({ of: 11, confirmed: 10 }), 'waiting');
    assert.equal(outcome({ of: 11, confirmed: 11 }), 'reached');
  });

  it('is out of reach as soon as refusals prevent the share', () => {
    assert.equal(outcome({ refused: 1 }), 'out-of-reach');
    assert.equal(outcome({ refused: 1 }, { sharePpm: 900_000 }), 'waiting');
    assert.equal(outcome({ refused: 2 }, { sharePpm: 900_000 }), 'out-of-reach');
  });

  it('is withdrawn or superseded before it is out of reach, and neither if the share is reached', () => {
    assert.equal(outcome({ later: 1, supersededBy: 43, refused: 9 }), 'superseded');
    assert.equal(outcome({ withdrawn: true, later: 1 }), 'withdrawn');
    assert.equal(outcome({ later: 1, refused: 1, confirmed: 8 }, { sharePpm: 800_000 }), 'reached');
    assert.equal(outcome({ absent: true, signedSerial: 41 }), 'absent');
    assert.equal(outcome({ absent: true, signedSerial: 41, elsewhere: 9 }), 'absent');
  });

  it('is withdrawn by signed metadata, even if hosts confirmed the release', () => {
    assert.equal(outcome({ withdrawn: true, signedSerial: 43, confirmed: 10 }), 'withdrawn');
  });

  it('is reached only by a reading of the repository from then on, and not later than two minutes or its time', () => {
    const ends = (readAtMs: number, forMs: number, elapsedMs = forMs) =>
      judgeWait(
        facts({ confirmed: 10, signedSerial: 42, readAtMs }),
        { ...terms, withinMs: 900_000 },
        {
          ...{ frozen: 10, elapsedMs, reached: { sinceMs: 5000, elapsedMs: elapsedMs - forMs } },
        },
      ).outcome;
    assert.deepEqual([ends(4999, 0), ends(5000, 0)], ['waiting', 'reached']);
    assert.deepEqual([ends(4999, 119_999), ends(4999, 120_000)], ['waiting', 'reached']);
    assert.equal(ends(4999, 1, 900_000), 'reached');
    assert.equal(
      outcome({ atMs: 9001, confirmed: 10, signedSerial: 42, readAtMs: 9000 }),
      'waiting',
      'a reading of before the share was reached',
    );
    assert.equal(outcome({ confirmed: 10 }), 'reached', 'no repository is read');
  });

  it('takes the superseding release from signed metadata, and not from hosts', () => {
    const most = { sharePpm: 900_000 };
    assert.equal(outcome({ signedSerial: 43, supersededBy: 43 }, most), 'superseded');
    assert.equal(outcome({ signedSerial: 42, later: 0 }, most), 'waiting');
    assert.equal(outcome({ signedSerial: 43, supersededBy: 43, confirmed: 10 }), 'reached');
  });

  it('ends because of hosts with a later release, or another one of this serial, only if it needs these hosts', () => {
    const most = { sharePpm: 900_000 };
    assert.deepEqual([outcome({ later: 1 }, most), outcome({ later: 2 }, most)], ['waiting', 'superseded']);
    assert.deepEqual(
      [outcome({ elsewhere: 1 }, most), outcome({ elsewhere: 2 }, most)],
      ['waiting', 'ambiguous'],
    );
    assert.equal(outcome({ later: 1, elsewhere: 1 }, most), 'out-of-reach');
    assert.equal(outcome({ refused: 1, elsewhere: 1 }, most), 'out-of-reach');
    assert.equal(outcome({ elsewhere: 1, confirmed: 9 }, most), 'reached');
  });

  it('ends if no host counts', () => {
    assert.equal(outcome({ of: 0 }, {}, 0, 0), 'nobody');
  });

  it('ends when the time is over, unless it is reached in that moment', () => {
    assert.equal(outcome({ confirmed: 9 }, {}, 59_999), 'waiting');
    assert.equal(outcome({ confirmed: 9 }, {}, 60_000), 'time-over');
    assert.equal(outcome({ confirmed: 10 }, {}, 60_000), 'reached');
  });
});

describe('the verdict of a wait for a settled release', () => {
  const settled = { confirmed: 0, notified: 0, unobserved: 0, baking: 0, failed: 0, unknown: 0 };
  const until = { until: 'settled' } as const;

  it('waits for hosts that confirmed the release and have not passed its bake time', () => {
    const baking = { confirmed: 10, settled: { ...settled, confirmed: 9, baking: 1 } };
    assert.equal(outcome(baking, until), 'waiting');
    assert.equal(outcome(baking), 'reached');
    assert.equal(outcome({ confirmed: 10, settled: { ...settled, confirmed: 10 } }, until), 'reached');
  });

  it('counts a host that cannot confirm as done only with --accept notified', () => {
    const notified = { notified: 10, settled: { ...settled, notified: 10 } };
    assert.equal(outcome(notified, until), 'waiting');
    assert.equal(outcome(notified, { ...until, accept: 'notified' }), 'reached');
  });

  it('is out of reach once a host failed and nothing was restored', () => {
    const failed = { confirmed: 10, settled: { ...settled, confirmed: 9, failed: 1 } };
    assert.equal(outcome(failed, until), 'out-of-reach');
    assert.equal(outcome(failed, { ...until, sharePpm: 900_000 }), 'reached');
  });

  it('never counts a host as done if its version has no bake time', () => {
    assert.equal(outcome({ confirmed: 10, settled: { ...settled, unknown: 10 } }, until), 'waiting');
    assert.equal(outcome({ confirmed: 10 }, until), 'waiting');
  });

  it('counts notified hosts of a promotion, and no release that was withdrawn', () => {
    const share = (more: Partial<WaitFacts>) => judgeSettledShare(facts(more), 950_000);
    const half = { settled: { ...settled, confirmed: 5, notified: 5 } };
    assert.deepEqual(share(half), { isReached: true, of: 10, needed: 10, done: 10 });
    assert.equal(share({ ...half, of: 11 }).isReached, false);
    assert.equal(share({ ...half, withdrawn: true }).isReached, false);
    assert.deepEqual(share({ of: 0 }), { isReached: false, of: 0, needed: 1, done: 0 });
  });
});
