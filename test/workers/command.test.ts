import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv } from 'ajv';
import { isWritError } from '../../src/core/errors.js';
import { command } from '../../src/workers/command.js';
import type { Answer, Driver } from '../../src/workers/driver.js';
import { driverContext } from '../support/driver-context.js';

const target = { generation: 7, path: '/policy/$&/generations/7' };

function driverOf(run: readonly string[], options: { confirms?: boolean } = {}): Driver {
  return command.create({ run, ...options }, driverContext());
}

function sh(script: string, options: { confirms?: boolean; timeoutMs?: number } = {}): Promise<Answer> {
  const { timeoutMs = 10_000, ...rest } = options;
  return driverOf(['sh', '-c', script], rest).reset('sh', { target, timeoutMs });
}

describe('the command driver', () => {
  it('takes exit 0 for told, and for confirmed only when the user vouches for it', async () => {
    assert.deepEqual(await sh('echo reloaded'), { kind: 'told', text: 'exit 0: reloaded' });
    assert.deepEqual(await sh('true', { confirms: true }), { kind: 'confirmed', text: 'exit 0' });
    assert.equal(driverOf(['true']).verdictClass, 'early');
    assert.equal(driverOf(['true'], { confirms: true }).verdictClass, 'true');
  });

  const kinds: readonly (readonly [number, Answer['kind']])[] = [
    [1, 'refused'],
    [31, 'refused'],
    [32, 'told'],
    [63, 'told'],
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

  it('keeps the end of a long output, where the reason stands', async () => {
    const answer = await sh('for i in $(seq 2000); do echo line $i; done; echo the reason >&2; exit 1');
    assert.equal(answer.kind, 'refused');
    assert.ok(answer.text.endsWith('line 2000 | the reason'));
    assert.ok(answer.text.length < 1100);
  });

  it('hands over the generation in arguments and environment, and clears the rest', async () => {
    const argument = await driverOf(['/bin/echo', 'dir={current}/x']).reset('echo', {
      target,
      timeoutMs: 10_000,
    });
    assert.equal(argument.text, `exit 0: dir=${target.path}/x`);
    const environment = await sh('env | grep -v "^PWD=\\|^_=\\|^SHLVL=" | sort');
    assert.match(
      environment.text,
      /^exit 0: PATH=[^|]* \| WRIT_GENERATION=7 \| WRIT_GENERATION_DIR=\/policy\/\$&\/generations\/7$/,
    );
  });

  it('cannot reach through a program that hangs, is killed, or is not there', async () => {
    const late = await sh('sleep 60', { timeoutMs: 50 });
    assert.deepEqual(late, { kind: 'unreachable', text: 'timed out' });
    assert.deepEqual(await sh('kill -9 $$'), { kind: 'unreachable', text: 'killed by SIGKILL' });
    const missing = await driverOf(['/nonexistent/rndc']).reset('rndc', { target, timeoutMs: 1000 });
    assert.equal(missing.kind, 'unreachable');
    assert.match(missing.text, /^not started: /);
  });

  it('is one worker, named as its program', async () => {
    assert.deepEqual(await driverOf(['/usr/sbin/rndc', 'reload']).members(), ['rndc']);
  });

  it('refuses a placeholder that it does not fill', () => {
    for (const run of [['rndc', '{bundle}'], ['rndc', 'a{candidate}b'], ['']]) {
      assert.throws(
        () => driverOf(run),
        (error) => isWritError(error) && error.code === 'CONFIG_INVALID',
      );
    }
    driverOf(['sh', '-c', '{ test -d {current}; }']);
  });
});

describe('the options of the command driver', () => {
  const validate = new Ajv({ strict: true }).compile({
    type: 'object',
    properties: command.properties,
    required: [command.name, ...command.required],
    additionalProperties: false,
  });

  it('are a program with arguments, never a shell line', () => {
    assert.ok(validate({ run: ['rndc', 'reload'] }));
    assert.ok(validate({ run: ['rndc', 'reload'], confirms: true }));
    assert.equal(validate({ run: 'rndc reload' }), false);
    assert.equal(validate({ run: [] }), false);
    assert.equal(validate({ run: ['a\0b'] }), false);
  });
});
