import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { command } from '../../../../src/workers/drivers/command.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';

const target = { generation: 7, path: '/policy/$&/generations/7' };

function driverOf(run: readonly string[], options: { confirms?: boolean } = {}): Driver {
  return command.create({ run, ...options }, driverContext());
}

function sh(script: string, options: { confirms?: boolean; timeoutMs?: number } = {}): Promise<Answer> {
  const { timeoutMs = 60_000, ...rest } = options;
  return driverOf(['sh', '-c', script], rest).reset('sh', { target, timeoutMs });
}

describe('the command driver', () => {
  it('returns notified for exit 0, and confirmed only if the user configures it', async () => {
    assert.deepEqual(await sh('echo reloaded'), { kind: 'notified', text: 'exit 0: reloaded' });
    assert.deepEqual(await sh('true', { confirms: true }), { kind: 'confirmed', text: 'exit 0' });
    assert.equal(driverOf(['true']).verdictClass, 'early');
    assert.equal(driverOf(['true'], { confirms: true }).verdictClass, 'true');
  });

  const kinds: readonly (readonly [number, Answer['kind']])[] = [
    [1, 'refused'],
    [31, 'refused'],
    [32, 'unreachable'],
    [63, 'unreachable'],
    [64, 'unreachable'],
    [75, 'unreachable'],
    [126, 'unreachable'],
    [127, 'unreachable'],
    [255, 'unreachable'],
  ];
  for (const [exitCode, kind] of kinds) {
    it(`takes exit ${exitCode} for ${kind}`, async () => {
      assert.equal((await sh(`exit ${exitCode}`)).kind, kind);
    });
  }

  it('keeps the end of a long output, which has the reason', async () => {
    const answer = await sh('for i in $(seq 2000); do echo line $i; done; echo the reason >&2; exit 1');
    assert.equal(answer.kind, 'refused');
    assert.ok(answer.text.endsWith('line 2000 | the reason'));
    assert.ok(answer.text.length < 1100);
  });

  it('hands over the generation in arguments and environment, and clears the rest', async () => {
    const argument = await driverOf(['/bin/echo', 'dir={current}/x']).reset('echo', {
      target,
      timeoutMs: 60_000,
    });
    assert.equal(argument.text, `exit 0: dir=${target.path}/x`);
    const environment = await sh('env | grep -v "^PWD=\\|^_=\\|^SHLVL=" | sort');
    assert.match(
      environment.text,
      /^exit 0: PATH=[^|]* \| WRIT_GENERATION=7 \| WRIT_GENERATION_DIR=\/policy\/\$&\/generations\/7 \| WRIT_WORKER=sh$/,
    );
  });

  it('cannot reach through a program that hangs, is killed, or is not there', async () => {
    const late = await sh('sleep 60', { timeoutMs: 50 });
    assert.deepEqual(late, { kind: 'unreachable', text: 'timed out' });
    assert.deepEqual(await sh('kill -9 $$'), { kind: 'unreachable', text: 'killed by SIGKILL' });
    const missing = await driverOf(['/nonexistent/rndc']).reset('rndc', { target, timeoutMs: 60_000 });
    assert.equal(missing.kind, 'unreachable');
    assert.match(missing.text, /^not started: /);
  });

  it('is one worker, named as its program', async () => {
    assert.deepEqual(await driverOf(['/usr/sbin/rndc', 'reload']).members(), ['rndc']);
  });

  it('notifies each worker that a command lists, by argument and environment', async () => {
    const options = { members: { run: ['printf', 'b\\na\\n'] } };
    const byArgument = command.create(
      { run: ['echo', '{worker}', '{generation}'], ...options },
      driverContext(),
    );
    assert.deepEqual(await byArgument.members(), ['a', 'b']);
    const reset = { target, timeoutMs: 60_000 };
    assert.deepEqual(await byArgument.reset('b', reset), { kind: 'notified', text: 'exit 0: b 7' });
    const run = ['sh', '-c', 'echo $WRIT_WORKER'];
    const byEnvironment = command.create({ run, ...options }, driverContext());
    assert.equal((await byEnvironment.reset('a', reset)).text, 'exit 0: a');
    assert.equal((await byArgument.reset('--all', reset)).kind, 'unreachable');
  });

  it('restarts by its own command, and checks liveness by a pid file', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('pid'), `${process.pid}\n`);
    const options = { restart: { run: ['sh', '-c', 'exit $1', 'sh', '3'] }, pidFile: dir.join('pid') };
    const driver = command.create({ run: ['true'], ...options }, driverContext());
    const answer = await driver.restart?.('true', { target, timeoutMs: 60_000 });
    assert.deepEqual(answer, { kind: 'refused', text: 'exit 3' });
    assert.deepEqual([await driver.liveness?.('true'), await driver.pid?.('true')], ['alive', process.pid]);
    rmSync(dir.join('pid'));
    assert.deepEqual([await driver.liveness?.('true'), await driver.pid?.('true')], ['dead', undefined]);
    const plain = driverOf(['true']);
    assert.deepEqual([plain.restart, plain.liveness, plain.pid], [undefined, undefined, undefined]);
  });

  it('takes an answer for unreachable if it matches the rule of the configuration', async () => {
    const rndc = 'echo "rndc: connect failed: 127.0.0.1#953: connection refused" >&2; exit 1';
    const kindOf = async (script: string, unreachable: object): Promise<Answer['kind']> => {
      const driver = command.create({ run: ['sh', '-c', script], unreachable }, driverContext());
      return (await driver.reset('sh', { target, timeoutMs: 60_000 })).kind;
    };
    assert.equal(await kindOf(rndc, { match: 'connect failed|connection refused' }), 'unreachable');
    assert.equal(await kindOf(rndc, { exit: [1], match: 'connect failed' }), 'unreachable');
    assert.equal(
      await kindOf(rndc, { exit: [2], match: 'connect failed' }),
      'refused',
      'all that is given must hold',
    );
    assert.equal(await kindOf('echo "zone: syntax error"; exit 1', { match: 'connect failed' }), 'refused');
    const echoed = 'echo "zone:3: syntax error" >&2; echo "connect failed" >&2; exit 1';
    assert.equal(await kindOf(echoed, { match: 'connect failed' }), 'refused', 'a line of the policy');
    assert.equal(await kindOf('exit 3', { exit: [3] }), 'unreachable');
    assert.equal(await kindOf('echo connect failed; exit 0', { match: 'connect failed' }), 'notified');
    throwsCode('CONFIG_INVALID', () =>
      command.create({ run: ['true'], unreachable: { match: '(' } }, driverContext()),
    );
  });

  it('ignores a refusal while the daemon is dead', async () => {
    using dir = tempDir();
    const driver = command.create(
      { run: ['sh', '-c', 'echo cannot connect; exit 1'], pidFile: dir.join('pid') },
      driverContext(),
    );
    const ask = (): Promise<Answer> => driver.reset('sh', { target, timeoutMs: 60_000 });
    assert.deepEqual(await ask(), {
      kind: 'unreachable',
      text: `counts as dead: there is no pid file ${dir.join('pid')}: if its daemon runs, correct the path, or let the daemon write the file; its answer was: exit 1: cannot connect`,
    });
    writeFileSync(dir.join('pid'), '4194305\n');
    assert.equal((await ask()).text, 'nobody lives there: exit 1: cannot connect');
    writeFileSync(dir.join('pid'), `${process.pid}\n`);
    assert.equal((await ask()).kind, 'refused');
  });

  it('identifies a restarted daemon by its pid file, and a dead one not at all', async () => {
    using dir = tempDir();
    const pidFile = dir.join('pid');
    const driver = command.create({ run: ['true'], pidFile }, driverContext());
    writeFileSync(pidFile, `${process.pid}\n`);
    assert.match((await driver.identity?.('true')) ?? '', new RegExp(`^${process.pid}@\\d+$`));
    rmSync(pidFile);
    assert.equal(await driver.identity?.('true'), undefined);
    assert.equal(driverOf(['true']).identity, undefined);
  });

  it('finds the pid file of each worker of a set', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('a.pid'), `${process.pid}\n`);
    const driver = command.create(
      { run: ['true'], members: { run: ['printf', 'a\\nb\\n'] }, pidFile: dir.join('{worker}.pid') },
      driverContext(),
    );
    assert.deepEqual(await Promise.all(['a', 'b'].map((id) => driver.liveness?.(id))), ['alive', 'dead']);
  });

  for (const options of [
    { run: ['echo', '{worker}'] },
    { run: ['true'], restart: { run: ['{worker}'] } },
    { run: ['true'], restart: { run: [''] } },
    { run: ['true'], pidFile: '/run/{worker}.pid' },
    { run: ['true'], pidFile: '/run/a.pid', members: { run: ['true'] } },
  ]) {
    it(`refuses ${JSON.stringify(options)}`, () => {
      throwsCode('CONFIG_INVALID', () => command.create(options, driverContext()));
    });
  }

  it('refuses an unknown placeholder', () => {
    for (const run of [['rndc', '{bundle}'], ['rndc', 'a{candidate}b'], ['']]) {
      throwsCode('CONFIG_INVALID', () => driverOf(run));
    }
    driverOf(['sh', '-c', '{ test -d {current}; }']);
  });
});

describe('the options of the command driver', () => {
  const validate = compileOptions(command);

  it('are a program with arguments, never a shell line', () => {
    assert.ok(validate({ run: ['rndc', 'reload'] }));
    assert.ok(validate({ run: ['rndc', 'reload'], confirms: true }));
    assert.ok(
      validate({ run: ['a'], restart: { run: ['b'] }, members: { run: ['c'] }, pidFile: '/run/a.pid' }),
    );
    assert.equal(validate({ run: ['a'], restart: ['b'] }), false);
    assert.equal(validate({ run: ['a'], pidFile: 'a.pid' }), false);
    assert.equal(validate({ run: 'rndc reload' }), false);
    assert.equal(validate({ run: [] }), false);
    assert.equal(validate({ run: ['a\0b'] }), false);
  });
});
