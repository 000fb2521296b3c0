import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import {
  judgeProcesses,
  type ProcessFacts,
  processFacts,
} from '../../../../src/agent/doctor/check-processes.js';
import { findProcess } from '../../../../src/platform/process/processes.js';
import { userName } from '../../../../src/platform/users/user-id.js';
import { signal } from '../../../../src/workers/drivers/signal.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';

const reset = { driver: 'signal', options: { signal: 'HUP' }, timeoutMs: 1, min: 1 };
const judged = (facts: readonly ProcessFacts[], driver = 'signal') =>
  judgeProcesses({ name: 'ns', reset: { ...reset, driver } }, facts).map(({ state, text, code, next }) =>
    [state, text, code, next].filter((one) => one !== undefined).join(' | '),
  );

describe('doctor on the processes of workers', () => {
  it('shows the command line of the process that a signal would reach', () => {
    const facts = [
      { worker: 'a.pid', kind: 'found', pid: 812, commandLine: '/usr/sbin/named -u bind' },
    ] as const;
    assert.deepEqual(judged(facts), ['ok | ns/a.pid gets SIGHUP: process 812: /usr/sbin/named -u bind']);
    assert.deepEqual(judged(facts, 'http'), ['ok | ns/a.pid is process 812: /usr/sbin/named -u bind']);
  });

  it('names the user of the process that is taken for a worker', () => {
    const facts = { worker: '127.0.0.1:9014', kind: 'found', pid: 812, commandLine: 'fake.py 9014' } as const;
    assert.deepEqual(judged([{ ...facts, user: 'www-data' }], 'http'), [
      'ok | ns/127.0.0.1:9014 is process 812 of www-data: fake.py 9014',
    ]);
  });

  it('warns of a stopped process, and names the command that continues it', async () => {
    using dir = tempDir();
    const child = spawn('sleep', ['60'], { stdio: 'ignore' });
    writeFileSync(dir.join('pid'), String(child.pid));
    const driver = signal.create({ signal: 'HUP', pidFile: dir.join('pid') }, driverContext());
    const examine = async () => judged(await processFacts({ driver }, ['pid']));
    try {
      assert.match((await examine())[0] ?? '', /^ok \| /);
      child.kill('SIGSTOP');
      // The kernel stops the process asynchronously.
      for (let tries = 0; tries < 100 && findProcess(child.pid ?? 0)?.stopped !== 'yes'; tries += 1)
        await setTimeout(10);
      const [stopped = ''] = await examine();
      assert.match(stopped, /^warn \| ns\/pid: process \d+ is stopped \(SIGSTOP, a debugger\)/);
      assert.ok(stopped.endsWith(` | kill -CONT ${child.pid}`), stopped);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('warns of an uncertain process, and leaves a dead one to the finding of its group', () => {
    assert.deepEqual(
      judged([
        { worker: 'a', kind: 'unknown', reason: 'two have the socket', hint: 'give `process.unit`' },
        { worker: 'b', kind: 'dead', reason: 'process 7 is dead' },
      ]),
      [
        'warn | ns/a: its process is not certain: two have the socket | PROCESS_UNKNOWN | give `process.unit`',
      ],
    );
  });

  it('shows a command line bounded and without control characters', async () => {
    using dir = tempDir();
    const argument = `\u001b[31m${'x'.repeat(1000)}`;
    const child = spawn('sh', ['-c', 'read line', argument], { stdio: ['pipe', 'ignore', 'ignore'] });
    writeFileSync(dir.join('pid'), String(child.pid));
    const driver = signal.create({ signal: 'HUP', pidFile: dir.join('pid') }, driverContext());
    const [facts] = await processFacts({ driver }, ['pid']);
    child.kill('SIGKILL');
    assert.equal(facts?.kind === 'found' ? facts.user : '', userName(process.getuid?.() ?? 0));
    const line = facts?.kind === 'found' ? (facts.commandLine ?? '') : '';
    assert.match(line, /^sh -c read line \\u\{1b\}\[31mx+\.\.\.$/);
    assert.ok(line.length < 220);
  });
});
