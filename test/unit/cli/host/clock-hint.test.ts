// The warning of `writ pull` and `writ health` for a clock that is before the release of the program. It is not part of the answer.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runWrit } from '../../../kit/cli/run-writ.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const dayMs = 86_400_000;
const releasedAtMs = Date.UTC(2030, 0, 10);

function run(command: string, nowMs: number, released?: number) {
  const date = released === undefined ? {} : { releasedAtMs: released };
  return runWrit([command, '--config', '/no/such.yaml'], { clock: fakeClock({ nowMs }), ...date });
}

describe('a clock that is before the release of the program', () => {
  for (const command of ['pull', 'health'])
    it(`causes a warning of writ ${command}, and changes neither its answer nor its exit code`, async () => {
      const right = await run(command, releasedAtMs - dayMs, releasedAtMs);
      const wrong = await run(command, releasedAtMs - dayMs - 1, releasedAtMs);
      assert.doesNotMatch(right.stderr, /the clock of this host/);
      assert.match(
        wrong.stderr,
        /the clock of this host is wrong: it is 2030-01-08.*before the release.* 2030-01-10/,
      );
      assert.deepEqual([wrong.exitCode, wrong.stdout], [right.exitCode, right.stdout]);
    });

  it('is a failure of the clock in writ doctor', async () => {
    const early = await run('doctor', releasedAtMs - dayMs - 1, releasedAtMs);
    assert.match(early.stdout, /FAIL +clock +it is 2030-01-08.*before the release.* 2030-01-10/);
    const { stdout } = await run('doctor', Date.UTC(2000, 0, 1));
    assert.doesNotMatch(stdout, /before the release/);
  });

  it('is not reported for an injected clock without a release date', async () => {
    const { stderr } = await run('health', Date.UTC(2000, 0, 1));
    assert.doesNotMatch(stderr, /the clock of this host/);
  });
});
