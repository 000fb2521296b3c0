// The process of a worker exits between its notification and the commit: the successor reads the new policy and passes its probe,
// so that only the result of the move can report the exit.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { bakeMs, bakingHost, type SupervisedDriver, supervisedDriver } from '../../kit/host/baking-host.js';
import { confirms } from '../../kit/workers/scripted-driver.js';

const second = 1000;

/** The worker loads release 1; at each later notification its process exits in this way. */
async function endsAtNotification(
  driver: SupervisedDriver,
  how: 'abnormal' | 'clean' | 'unrecorded',
  bake = { forMs: bakeMs, restarts: 2 },
) {
  const baking = bakingHost(driver, { bundles: [{ name: 'access', bake }] });
  await baking.take(1);
  await baking.pass(bakeMs + 10 * second);
  driver.workers.set('a', (generation) => {
    const { clock } = baking.test;
    clock.setWallTime(clock.nowMs() + 5 * second);
    driver.replace('a', how);
    return confirms(generation);
  });
  return baking;
}

const named = ({ outcome, warnings }: CycleResult) => [
  outcome,
  ...warnings.map(({ code, facts }) => [code, facts['worker'], facts['abnormal'], facts['unexplained']]),
];

describe('a process that ends between its notification and the commit', () => {
  it(
    'is reported by the pull when no supervisor records the cause, and the release stays',
    longCase,
    async () => {
      using baking = await endsAtNotification(supervisedDriver(['a'], 'unrecorded'), 'unrecorded');
      assert.deepEqual(named(await baking.take(2)), ['activated', ['WORKER_RESTARTED', 'app/a', 0, 1]]);
      baking.driver.workers.set('a', confirms);
      await baking.pass(60 * second);
      assert.deepEqual([baking.active(), baking.restores.length], ['2', 0]);
    },
  );

  it('is reported by the pull when it was recorded as abnormal, and the next observation causes a rollback', async () => {
    using baking = await endsAtNotification(supervisedDriver(['a']), 'abnormal');
    assert.deepEqual(named(await baking.take(2)), ['activated', ['WORKER_RESTARTED', 'app/a', 1, 0]]);
    baking.driver.workers.set('a', confirms);
    await baking.pass(2 * second);
    assert.equal(baking.active(), '1');
  });

  it('is reported by a rollback too', longCase, async () => {
    using baking = await endsAtNotification(supervisedDriver(['a'], 'unrecorded'), 'unrecorded');
    await baking.take(2);
    const { result } = await rollBack(baking.test.host, { by: 'anna', signal: new AbortController().signal });
    assert.deepEqual(named(result), ['activated', ['WORKER_RESTARTED', 'app/a', 0, 1]]);
  });

  it('is reported when the bundle has no bake time', async () => {
    const none = { forMs: 0, restarts: 2 };
    using baking = await endsAtNotification(supervisedDriver(['a']), 'abnormal', none);
    assert.deepEqual(named(await baking.take(2)), ['activated', ['WORKER_RESTARTED', 'app/a', 1, 0]]);
  });

  it('is not reported when its supervisor ended it on request', longCase, async () => {
    using baking = await endsAtNotification(supervisedDriver(['a']), 'clean');
    assert.deepEqual(named(await baking.take(2)), ['activated']);
  });
});

/** Its own supervisor: a second after HUP the process exits, and its successor writes its pid into the file. */
const dyingDaemon = `while :; do sh -c 'trap "sleep 1; kill -9 $$" HUP; echo $$ > "$0.new"; mv "$0.new" "$0"
  while :; do sleep 0.1; done' "$0"; done`;

describe('writ pull with a daemon that dies of its notification and restarts', longCase, () => {
  it('reports the worker in its output and in --json, although the successor passes its probe', async () => {
    using host = await installHost();
    const pidFile = host.dir.join('run', 'd.pid');
    const daemon = spawn('sh', ['-c', dyingDaemon, pidFile], { stdio: 'ignore', detached: true });
    try {
      while (!existsSync(pidFile)) await sleep(20);
      const before = 'test "$(cat "$0")" != "$(cat "$0.before")"';
      const worker = {
        name: 'd',
        uses: ['dns-edge'],
        load: { run: ['sh', '-c', 'cp "$0" "$0.before"', pidFile] },
        reset: { signal: 'HUP', pidFile },
        probe: { run: ['sh', '-c', before, pidFile], gap: '100ms', deadline: '30s' },
      };
      host.configure({ workers: [worker] });
      const pulled = await host.writ('pull', '--json');
      const { outcome, warnings } = jsonOf(pulled) as unknown as CycleResult;
      assert.equal(outcome, 'activated', pulled.stdout);
      const [warning] = warnings.filter(({ code }) => code === 'WORKER_RESTARTED');
      assert.equal(warning?.facts['worker'], 'd/d.pid', pulled.stdout);
      const back = await host.writ('rollback');
      assert.match(back.stdout, /warning \[WORKER_RESTARTED\] d\/d\.pid had 1 unexplained restart while/);
    } finally {
      process.kill(-(daemon.pid ?? Number.NaN), 'SIGKILL');
    }
  });
});
