import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, chownSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { childrenOf, findProcess } from '../../../../src/platform/process/processes.js';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { signal } from '../../../../src/workers/drivers/signal.js';
import { until } from '../../../kit/assert/until.js';
import { runNodeScript } from '../../../kit/cli/child-script.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { type MasterHabit, startFakeMaster } from '../../../kit/workers/fake-master.js';
import { startFakeWorker } from '../../../kit/workers/fake-worker.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 60_000 };
const isRoot = process.getuid?.() === 0;

function driverOf(pidFile: string, name = 'HUP'): Driver {
  return signal.create({ signal: name, pidFile }, driverContext());
}

describe('the signal driver', () => {
  it('signals the process of the pid file, and reports only that', async () => {
    using dir = tempDir();
    const worker = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('named.pid'), `${worker.pid}\n`);
    const driver = driverOf(dir.join('named.pid'), 'USR1');
    assert.equal(driver.verdictClass, 'silent');
    assert.deepEqual(await driver.members(), ['named.pid']);
    const answer = await driver.reset('named.pid', reset);
    assert.deepEqual(answer, { kind: 'notified', text: `SIGUSR1 sent to process ${worker.pid}` });
    await worker.gotSignals(1);
    assert.deepEqual(worker.signals(), ['SIGUSR1']);
    await worker.kill();
  });

  it('has no member before the daemon has written its pid file', async () => {
    using dir = tempDir();
    assert.deepEqual(await driverOf(dir.join('pid')).members(), []);
  });

  it('cannot reach a daemon that is dead, or without a pid in its file', async () => {
    using dir = tempDir();
    const worker = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('pid'), `${worker.pid}\n`);
    const driver = driverOf(dir.join('pid'));
    await worker.kill();
    assert.deepEqual(await driver.members(), ['pid']);
    const dead = await driver.reset('pid', reset);
    assert.equal(dead.kind, 'unreachable');
    assert.match(dead.text, /is dead/);
    writeFileSync(dir.join('pid'), '-1');
    assert.equal((await driver.reset('pid', reset)).kind, 'unreachable');
    rmSync(dir.join('pid'));
    assert.equal((await driver.reset('pid', reset)).kind, 'unreachable');
  });

  it('signals the new process of a restarted daemon', async () => {
    using dir = tempDir();
    const first = await startFakeWorker(dir.join('log1'));
    writeFileSync(dir.join('pid'), `${first.pid}`);
    const driver = driverOf(dir.join('pid'));
    await driver.members();
    const second = await startFakeWorker(dir.join('log2'));
    writeFileSync(dir.join('pid'), `${second.pid}`);
    assert.equal((await driver.reset('pid', reset)).kind, 'notified');
    await second.gotSignals(1);
    assert.deepEqual(first.signals(), []);
    await first.kill();
    await second.kill();
  });

  it('identifies a process that replaced another one, and a dead one not at all', async () => {
    using dir = tempDir();
    const driver = driverOf(dir.join('pid'));
    const seen: (string | undefined)[] = [];
    for (const name of ['log1', 'log2']) {
      const worker = await startFakeWorker(dir.join(name));
      writeFileSync(dir.join('pid'), `${worker.pid}`);
      seen.push(await driver.identity?.('pid'), await driver.identity?.('pid'));
      assert.equal(await driver.pid?.('pid'), worker.pid);
      await worker.kill();
    }
    assert.deepEqual([seen[0], seen[2]], [seen[1], seen[3]]);
    assert.notEqual(seen[0], seen[2]);
    assert.deepEqual([await driver.identity?.('pid'), await driver.pid?.('pid')], [undefined, undefined]);
  });

  it('does not signal a process of another user because a worker wrote its pid', {
    skip: isRoot ? false : 'only root can give a file to another user',
  }, async () => {
    using dir = tempDir();
    const victim = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('pid'), `${victim.pid}`);
    chownSync(dir.join('pid'), 65_534, 65_534);
    const answer = await driverOf(dir.join('pid')).reset('pid', reset);
    assert.equal(answer.kind, 'unreachable');
    assert.match(answer.text, /another user/);
    assert.deepEqual(victim.signals(), []);
    await victim.kill();
  });
});

describe('a pid file of another user', () => {
  const asRoot = { skip: isRoot ? false : 'only root can become another user' };

  it('may be that of its process, as for a daemon that writes it by itself', asRoot, async () => {
    using dir = tempDir();
    chmodSync(dir.path, 0o777);
    const worker = await startFakeWorker(dir.join('log'), { uid: 65_534 });
    writeFileSync(dir.join('pid'), `${worker.pid}`);
    chownSync(dir.join('pid'), 65_534, 65_534);
    assert.equal((await driverOf(dir.join('pid')).reset('pid', reset)).kind, 'notified');
    await worker.gotSignals(1);
    await worker.kill();
  });

  it('may be that of root, for an agent that is not', asRoot, async () => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    const result = await runNodeScript(`
      import { writeFileSync } from 'node:fs';
      const { signal } = await import(at('src/workers/drivers/signal.js'));
      const { driverContext } = await import(at('test/kit/workers/driver-context.js'));
      const pidFile = ${JSON.stringify(dir.join('pid'))};
      writeFileSync(pidFile, String(process.pid));
      process.on('SIGHUP', () => undefined);
      process.setgid(65534); process.setuid(65534);
      const driver = signal.create({ signal: 'HUP', pidFile }, driverContext());
      const answer = await driver.reset('pid', { target: { generation: 7, path: '/p/7' }, timeoutMs: 60_000 });
      console.log(answer.kind);
      process.exit(0);`);
    assert.equal(result.kind === 'exited' && result.stdout, 'notified\n', JSON.stringify(result));
  });
});

describe('a pid file that is a link', () => {
  it('causes no signal, because the user that created it would choose the process', async () => {
    using dir = tempDir();
    const victim = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('victim'), `${victim.pid}`);
    symlinkSync('victim', dir.join('app.pid'));
    assert.deepEqual(await driverOf(dir.join('*.pid')).members(), []);
    for (const pidFile of ['app.pid', '*.pid']) {
      const driver = driverOf(dir.join(pidFile));
      assert.equal((await driver.reset('app.pid', reset)).kind, 'unreachable', pidFile);
      assert.equal(await driver.liveness?.('app.pid'), 'unknown');
      assert.equal(await driver.identity?.('app.pid'), undefined);
    }
    assert.deepEqual(victim.signals(), []);
    await victim.kill();
  });
});

describe('a signal with the proof of replaced children', () => {
  /** @param keptChildren how many of its two children the master keeps, after which the deadline expires */
  async function tellMaster(habit: MasterHabit, keptChildren?: number): Promise<Answer> {
    using dir = tempDir();
    await using master = await startFakeMaster(dir.path, habit);
    const before = childrenOf(master.pid);
    const isKept = ({ pid }: { pid: number }): boolean => findProcess(pid) !== undefined;
    const clock = fakeClock();
    const sleep = async (): Promise<void> => {
      await until(() => before.filter(isKept).length === keptChildren);
      await clock.advance(reset.timeoutMs);
    };
    const context = keptChildren === undefined ? {} : { clock: { ...clock, sleep } };
    const driver = signal.create(
      { signal: 'HUP', pidFile: master.pidFile, proof: 'children' },
      driverContext(context),
    );
    assert.equal(driver.verdictClass, 'true');
    const [worker = ''] = await driver.members();
    // Await it here, because otherwise the master would exit before it is notified.
    return await driver.reset(worker, reset);
  }

  for (const habit of ['replaces', 'drains'] as const) {
    it(`confirms when all children that serve are new: a master that ${habit}`, async () => {
      const answer = await tellMaster(habit);
      assert.equal(answer.kind, 'confirmed');
      assert.match(answer.text, /replaced its 2 children/);
    });
  }

  const silences: readonly (readonly [MasterHabit, number])[] = [
    ['keeps', 2],
    ['keeps-one', 1],
    ['drops', 0],
  ];
  for (const [habit, kept] of silences) {
    it(`has no verdict on a master that ${habit}, because a slow one behaves the same`, async () => {
      const answer = await tellMaster(habit, kept);
      assert.equal(answer.kind, 'unreachable');
      assert.match(answer.text, new RegExp(`${kept} of its 2 children still serve`));
    });
  }

  it('cannot reach a master that died of it', async () => {
    const answer = await tellMaster('dies');
    assert.equal(answer.kind, 'unreachable');
    assert.match(answer.text, /which died/);
  });

  it('proves nothing of a process without children', async () => {
    const answer = await tellMaster('alone');
    assert.equal(answer.kind, 'notified');
    assert.match(answer.text, /had no children/);
  });

  it('stops watching when it is aborted', async () => {
    using dir = tempDir();
    await using master = await startFakeMaster(dir.path, 'keeps');
    const options = { signal: 'HUP', pidFile: master.pidFile, proof: 'children' };
    const stop = new AbortController();
    const asked = signal
      .create(options, driverContext())
      .reset('master.pid', { ...reset, timeoutMs: 60_000, signal: stop.signal });
    stop.abort();
    assert.equal((await asked).kind, 'unreachable');
  });
});

describe('a set of daemons by pid files', () => {
  it('has a member for each file, and signals only the given one', async () => {
    using dir = tempDir();
    const worker = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('a.pid'), `${worker.pid}\n`);
    writeFileSync(dir.join('b.pid'), 'none\n');
    writeFileSync(dir.join('other'), '1\n');
    const driver = driverOf(dir.join('*.pid'));
    assert.deepEqual(await driver.members(), ['a.pid', 'b.pid']);
    assert.equal((await driver.reset('a.pid', reset)).kind, 'notified');
    assert.equal((await driver.reset('b.pid', reset)).kind, 'unreachable');
    assert.deepEqual(await Promise.all(['a.pid', 'b.pid', 'c.pid'].map((id) => driver.liveness?.(id))), [
      'alive',
      'unknown',
      'dead',
    ]);
    await worker.gotSignals(1);
    await worker.kill();
    assert.equal(await driver.liveness?.('a.pid'), 'dead');
    assert.equal(await driver.identity?.('a.pid'), undefined);
  });

  it('ends where its directory ends', async () => {
    using dir = tempDir();
    const victim = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('victim.pid'), `${victim.pid}\n`);
    const driver = driverOf(dir.join('set/*.pid'));
    assert.equal((await driver.reset('../victim.pid', reset)).kind, 'unreachable');
    assert.deepEqual(victim.signals(), []);
    await victim.kill();
  });

  it('takes a zombie for dead, whatever kill(pid, 0) returns', async () => {
    using dir = tempDir();
    // `exec` leaves the child with a parent that never waits for it.
    const parent = spawn('sh', ['-c', 'sleep 0 & exec sleep 1000'], { stdio: 'ignore' });
    const zombie = (): string | undefined =>
      readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, 'utf8').trim() || undefined;
    await until(() => {
      const pid = zombie();
      return pid !== undefined && readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    });
    process.kill(Number(zombie()), 0);
    writeFileSync(dir.join('pid'), `${zombie()}\n`);
    assert.equal(await driverOf(dir.join('pid')).liveness?.('pid'), 'dead');
    assert.equal((await driverOf(dir.join('pid')).reset('pid', reset)).kind, 'unreachable');
    parent.kill('SIGKILL');
  });
});

describe('the options of the signal driver', () => {
  const validate = compileOptions(signal);

  it('take the signals that mean "read again", and no others', () => {
    assert.ok(validate({ signal: 'HUP', pidFile: '/run/named/named.pid' }));
    for (const name of ['KILL', 'TERM', 'SIGHUP', 'hup', 1]) {
      assert.equal(validate({ signal: name, pidFile: '/run/named/named.pid' }), false, String(name));
    }
  });

  it('need an absolute path of a pid file', () => {
    assert.throws(() => signal.create({ signal: 'HUP' }, driverContext()), { code: 'CONFIG_INVALID' });
    assert.equal(validate({ signal: 'HUP', pidFile: 'named.pid' }), false);
    assert.equal(validate({ signal: 'HUP', pidFile: '/run/named/' }), false);
  });
});
