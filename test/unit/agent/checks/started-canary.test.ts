import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { runStartedCanary } from '../../../../src/agent/checks/started-canary.js';
import type { HookReport } from '../../../../src/agent/hooks/hook.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { type Clock, systemClock } from '../../../../src/platform/time/clock.js';
import { until } from '../../../kit/assert/until.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { isGone } from '../../../kit/programs/processes.js';

interface Case {
  readonly start: string;
  readonly probe: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly time?: 'real' | 'skipped';
}

/** Scripts of a worker and of its probe; both get the directory `{scratch}` and, outside of it, `$0`. */
async function canary(dir: TempDir, options: Case): Promise<HookReport> {
  const { start, probe, timeoutMs = 60_000, signal, time = 'real' } = options;
  const root = dir.join('staging');
  fs.mkdirSync(root);
  const shell = (script: string): [string, ...string[]] => ['sh', '-c', script, dir.path, '{scratch}'];
  const report = await runStartedCanary(
    {
      kind: 'start',
      start: { run: shell(start), timeoutMs },
      probe: { run: shell(probe), timeoutMs },
      timeoutMs,
    },
    {
      places: { generation: '/gen', candidate: '/gen' },
      scratchRoot: root,
      durable: createDurableFs(),
      clock: time === 'real' ? systemClock : skippingPauses(),
      ...(signal === undefined ? {} : { signal }),
    },
  );
  assert.deepEqual(fs.readdirSync(root), [], 'its scratch directory remains');
  return report;
}

/** A clock with skipped pauses, so that the rest of the timeout is long enough for each probe as a real process. */
function skippingPauses(): Clock {
  const clock = fakeClock({ mode: 'skip' });
  return { ...clock, sleep: (delayMs, signal) => clock.sleep(500 * delayMs, signal) };
}

const stay = 'exec sleep 600';

describe('a started canary', () => {
  it('accepts if its probe passes and its worker still runs, and ends with its children', async () => {
    using dir = tempDir();
    const start = `echo $$ > $0/pids; sleep 60 & echo $! >> $0/pids; echo ready > $1/socket; wait`;
    const { verdict } = await canary(dir, { start, probe: 'grep -q ready $1/socket' });
    assert.equal(verdict.kind, 'ok');
    const pids = fs.readFileSync(dir.join('pids'), 'utf8').trim().split('\n').map(Number);
    assert.equal(pids.length, 2);
    for (const pid of pids) assert.ok(await isGone(pid), `${pid} still runs`);
  });

  it('is probed until the probe passes', async () => {
    using dir = tempDir();
    const probe = 'echo >> $0/asked; [ $(wc -l < $0/asked) -ge 3 ]';
    const { verdict } = await canary(dir, { start: stay, probe });
    assert.equal(verdict.kind, 'ok');
    assert.equal(fs.readFileSync(dir.join('asked'), 'utf8').length, 3);
  });

  it('refuses if its probe has not passed within the timeout', async () => {
    using dir = tempDir();
    const { verdict, text } = await canary(dir, {
      start: stay,
      probe: 'echo policy 4; exit 1',
      timeoutMs: 300_000,
      time: 'skipped',
    });
    assert.deepEqual([verdict.kind, text], ['refused', 'policy 4']);
  });

  it('gives no verdict if its probe cannot run, or hangs', async () => {
    using dir = tempDir();
    const absent = await canary(dir, {
      start: stay,
      probe: 'exit 127',
      timeoutMs: 300_000,
      time: 'skipped',
    });
    assert.equal(absent.verdict.kind, 'broken');
    using other = tempDir();
    const hangs = await canary(other, { start: stay, probe: 'sleep 600', timeoutMs: 300 });
    assert.equal(hangs.verdict.kind, 'broken');
  });

  it('that defers is not probed again', async () => {
    using dir = tempDir();
    const { verdict } = await canary(dir, { start: stay, probe: 'echo >> $0/asked; exit 75' });
    assert.equal(verdict.kind, 'deferred');
    assert.equal(fs.readFileSync(dir.join('asked'), 'utf8').length, 1);
  });

  const ends = [
    ['a complaint', 'echo "line 7: unknown view" >&2; exit 1', 'refused'],
    ['an exit code that only warns', 'exit 40', 'refused'],
    ['exit 0, as a program that goes into the background', 'exit 0', 'broken'],
    ['a program that is not there', 'exit 127', 'broken'],
    ['a signal', 'kill -SEGV $$', 'broken'],
    ['"not now"', 'exit 75', 'deferred'],
  ] as const;
  for (const [what, start, expected] of ends) {
    it(`that ends by itself with ${what} is ${expected}, whatever its probe returns`, async () => {
      using dir = tempDir();
      for (const probe of ['exit 0', 'exit 1']) {
        fs.rmSync(dir.join('staging'), { recursive: true, force: true });
        const { verdict } = await canary(dir, { start, probe });
        assert.equal(verdict.kind, expected, probe);
      }
    });
  }

  it('that dies of its probe does not accept', async () => {
    using dir = tempDir();
    const start = 'echo $$ > $0/pid; until [ -e $1/asked ]; do sleep 0.02; done; echo "no such zone"; exit 3';
    // The probe passes only after the death, also on a busy machine.
    const seen = 'until [ -s $0/pid ]; do sleep 0.02; done; while kill -0 $(cat $0/pid); do sleep 0.02; done';
    const { verdict, text } = await canary(dir, { start, probe: `touch $1/asked; ${seen} 2>&1; exit 0` });
    assert.deepEqual([verdict.kind, text], ['refused', 'no such zone']);
  });

  it('ends with its cycle', async () => {
    using dir = tempDir();
    const ending = new AbortController();
    const asked = canary(dir, { start: `echo $$ > $0/pid; ${stay}`, probe: 'exit 1', signal: ending.signal });
    await until(() => fs.existsSync(dir.join('pid')) && fs.readFileSync(dir.join('pid'), 'utf8') !== '');
    ending.abort();
    await asked;
    assert.ok(await isGone(Number(fs.readFileSync(dir.join('pid'), 'utf8'))));
  });
});
