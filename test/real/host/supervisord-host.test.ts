// A host with two programs under supervisord: they load rules after a signal, and their own configuration after a
// restart, one after the other. The reports of Writ and supervisord agree with the logs of the programs.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { expectAgreement } from '../../kit/assert/agreement.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';
import { type RealSupervisord, startSupervisord } from '../../kit/programs/real-supervisord.js';

const options = { timeout: 240_000, ...needs('supervisord', 'supervisor') };

/** Prints the last loaded policy of a program from its log, `worker:worker_0` from `0.log`. */
const probe = 'n=$(printf %s "$1" | tail -c 1); test "$(tail -n 1 "$2/$n.log")" = "$(cat "$3/app/rules")"';

function configFor(real: RealSupervisord, logs: string): Record<string, unknown> {
  const ask = { run: ['sh', '-c', probe, 'sh', '{worker}', logs, '{current}'], timeout: '60s', retry: 20 };
  const group = {
    name: 'app',
    uses: ['app'],
    when: { reset: ['rules'], restart: ['worker.conf'] },
    rolling: 1,
    reset: { supervisord: real.socket, group: 'worker', signal: 'HUP', timeout: '60s' },
    probe: ask,
    onDead: 'restart',
  };
  return { bundles: [{ name: 'app' }], workers: [group] };
}

const confirmed = { 'worker:worker_0': 'confirmed', 'worker:worker_1': 'confirmed' };
const isNote = (line: string): boolean => line === 'HUP' || line.startsWith('started');

describe('two real programs under supervisord, fed by Writ', options, () => {
  it('load published releases, and are never reported with a release that they do not use', async (t) => {
    using dir = tempDir();
    mkdirSync(dir.join('supervisor'));
    const reads = dir.join('state/policy/current/app');
    await using real = await startSupervisord(dir.join('supervisor'), { reads });
    const config = configFor(real, dir.join('supervisor'));
    await using writ = await wholeSystem(dir, { config, pollEvery: '30d' });
    const release = (rules: string, conf = 'threads 2') =>
      writ.publish({ rules: `${rules}\n`, 'worker.conf': `${conf}\n` });
    const inUse = (): (string | undefined)[] => [0, 1].map((one) => real.lines(one).at(-1));
    /** @returns the events of program N since its start for the test */
    const notes = (one: number): string[] =>
      real
        .lines(one)
        .filter(isNote)
        .map((line) => line.replace(/ \d+$/, ''));
    const starts = (): string[][] =>
      [0, 1].map((one) => real.lines(one).filter((line) => line.startsWith('started')));

    await t.test('both programs load rules after a signal each, without a restart', async () => {
      await release('rules 1');
      await writ.startAgent();
      const first = await writ.pull();
      assert.equal(first.exitCode, 0, JSON.stringify(first.json));
      const before = starts();
      await release('rules 2');
      await expectAgreement(writ, await writ.pull(), {
        exitCode: 0,
        outcome: 'activated',
        workers: confirmed,
      });
      assert.deepEqual(inUse(), ['rules 2', 'rules 2']);
      assert.deepEqual([notes(0).at(-1), notes(1).at(-1)], ['HUP', 'HUP']);
      assert.deepEqual(starts(), before);
    });

    await t.test('both programs are stopped and started after a change of their configuration', async () => {
      const before = starts();
      await release('rules 2', 'threads 4');
      await expectAgreement(writ, await writ.pull(), {
        exitCode: 0,
        outcome: 'activated',
        workers: confirmed,
      });
      assert.deepEqual(
        starts().map((lines) => lines.length),
        before.map((lines) => lines.length + 1),
      );
      assert.match(await real.ctl('status'), /worker_0 +RUNNING[\s\S]*worker_1 +RUNNING/);
    });

    await t.test(
      'a program that cannot start refuses: only the first one was tried, and it runs again as before',
      async () => {
        const [current, before] = [writ.current(), starts()];
        await release('rules 2', 'broken');
        const workers = { ...confirmed, 'worker:worker_0': 'notified' };
        const back = { exitCode: 5, outcome: 'rolled-back', code: 'WORKER_REFUSED', workers };
        await expectAgreement(writ, await writ.pull(), back);
        assert.equal(writ.current(), current);
        assert.match(await real.ctl('status'), /worker_0 +RUNNING[\s\S]*worker_1 +RUNNING/);
        assert.deepEqual(starts()[1], before[1], 'the second was never touched');
        assert.deepEqual(inUse(), ['rules 2', 'rules 2']);
      },
    );

    await t.test(
      'a stopped group is a failure with each name, and is confirmed only when it runs again',
      async () => {
        await real.ctl('stop', 'worker:*');
        await release('rules 3', 'threads 4');
        const gone = { 'worker:worker_0': 'unreachable', 'worker:worker_1': 'unreachable' };
        const pull = await writ.pull();
        await expectAgreement(writ, pull, {
          exitCode: 4,
          outcome: 'degraded',
          code: 'WORKERS_MISSING',
          workers: gone,
        });
        assert.match(JSON.stringify(pull.json['workers']), /NOT_RUNNING/);
        assert.deepEqual(inUse(), ['rules 2', 'rules 2']);
        await real.ctl('start', 'worker:*');
        await until(async () => {
          const { confirmed: all } = (await writ.status()) as { confirmed: boolean };
          return all;
        });
        assert.deepEqual(inUse(), ['rules 3', 'rules 3']);
      },
    );
  });
});
