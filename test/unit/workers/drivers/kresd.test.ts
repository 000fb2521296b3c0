import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { kresd } from '../../../../src/workers/drivers/kresd.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { type FakeKresdOptions, startFakeKresd } from '../../../kit/workers/fake-kresd.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';

const target = { generation: 7, path: '/policy/generations/7' };

function driverOf(glob: string, command = 'policy_reset()', expect = '0'): Driver {
  return kresd.create({ kresd: glob, command, expect, confirms: true }, driverContext());
}

async function ask(options: FakeKresdOptions, command?: string, timeoutMs = 60_000): Promise<Answer> {
  using dir = tempDir();
  const worker = await startFakeKresd(dir.join('1'), options);
  try {
    return await driverOf(dir.join('*'), command).reset('1', { target, timeoutMs });
  } finally {
    await worker.close();
  }
}

describe('the value of a confirmation by a kresd worker', () => {
  const classOf = (options: { readonly confirms?: boolean }, checked?: 'yes' | 'no') =>
    kresd.create(
      { kresd: '/run/k/*', command: 'policy_reset()', expect: '0', ...options },
      { ...driverContext(), ...(checked === undefined ? {} : { checked }) },
    ).verdictClass;

  it('is early without a check, because kresd confirms a list that it could not parse', () => {
    assert.deepEqual([classOf({}), classOf({}, 'no')], ['early', 'early']);
  });

  it('is true if the user configures it, or if a check parses the list', () => {
    assert.deepEqual([classOf({ confirms: true }, 'no'), classOf({}, 'yes')], ['true', 'true']);
  });

  it('is early if the user configures it, whatever the checks are', () => {
    assert.equal(classOf({ confirms: false }, 'yes'), 'early');
  });
});

describe('the kresd driver', () => {
  it('confirms by the exact answer, with or without a prompt', async () => {
    assert.deepEqual(await ask({}), { kind: 'confirmed', text: '0' });
    assert.deepEqual(await ask({ prompt: 'none' }), { kind: 'confirmed', text: '0' });
  });

  it('confirms when the answer comes one byte at a time, or two answers come at once', async () => {
    assert.deepEqual(await ask({ chunkBytes: 1 }), { kind: 'confirmed', text: '0' });
    assert.deepEqual(await ask({ behaviour: 'twice' }), { kind: 'confirmed', text: '0' });
  });

  it('sends the mode switch and the command and nothing else', async () => {
    using dir = tempDir();
    const worker = await startFakeKresd(dir.join('1'));
    await driverOf(dir.join('*')).reset('1', { target, timeoutMs: 60_000 });
    await worker.close();
    assert.equal(worker.received(), '__binary\npolicy_reset()\n');
    assert.equal(worker.connections(), 1);
  });

  for (const command of ['error("boom")', "require('ffi').C.kr_rules_reset()", 'nil', '1+1']) {
    it(`takes the answer of ${command} for a refusal`, async () => {
      assert.equal((await ask({}, command)).kind, 'refused');
    });
  }

  // Answers that kresd 6.4.2 gave in binary mode; the stand-in is no kresd 6.
  describe('with a stand-in for kresd 6', () => {
    const reset6 = "require('ffi').C.kr_rules_reset()";

    it('confirms by the reset of the rule database, with or without a prompt, byte by byte, two in one packet', async () => {
      const variants: readonly FakeKresdOptions[] = [
        {},
        { prompt: 'none' },
        { chunkBytes: 1 },
        { prompt: 'none', chunkBytes: 1 },
        { behaviour: 'twice' },
      ];
      for (const variant of variants)
        assert.deepEqual(await ask({ release: '6.4', ...variant }, reset6), { kind: 'confirmed', text: '0' });
    });

    it('takes the answer of a function that only the configuration of kresd 5 defines for a refusal', async () => {
      assert.equal((await ask({ release: '6.4' }, 'policy_reset()')).kind, 'refused');
    });
  });

  it('takes an answer that only contains or resembles the expected one for a refusal', async () => {
    for (const text of ['00', '0\n', ' 0', '0.0', '']) {
      assert.equal((await ask({ answer: () => text })).kind, 'refused', JSON.stringify(text));
    }
  });

  it('bounds a refusal and takes the control characters out of it', async () => {
    const answer = await ask({ answer: () => `\u001b[2J${'é'.repeat(4000)}` });
    assert.equal(answer.kind, 'refused');
    assert.ok(Buffer.byteLength(answer.text) <= 2000);
    assert.ok(!answer.text.includes('\u001b'));
  });

  it('cannot reach a worker that hangs, closes early, or announces 3 GB', async () => {
    const hanging = await ask({ behaviour: 'hang' }, undefined, 30);
    assert.equal(hanging.kind, 'unreachable');
    assert.match(hanging.text, /no answer in 30 ms/);
    assert.equal((await ask({ behaviour: 'close' })).kind, 'unreachable');
    assert.equal((await ask({ behaviour: 'huge' })).kind, 'unreachable');
  });

  it('cannot reach a worker that died or went away, and names its socket', async () => {
    using dir = tempDir();
    await leaveStaleSocket(dir.join('2'));
    const driver = driverOf(dir.join('*'));
    assert.deepEqual(await driver.members(), ['2']);
    const stale = await driver.reset('2', { target, timeoutMs: 60_000 });
    assert.deepEqual(stale, { kind: 'unreachable', text: `${dir.join('2')}: ECONNREFUSED` });
    const absent = await driver.reset('3', { target, timeoutMs: 60_000 });
    assert.deepEqual(absent, { kind: 'unreachable', text: `${dir.join('3')}: ENOENT` });
  });

  it('is alive while a process listens on its socket', async () => {
    using dir = tempDir();
    await leaveStaleSocket(dir.join('2'));
    const worker = await startFakeKresd(dir.join('1'), { behaviour: 'hang' });
    const driver = driverOf(dir.join('*'));
    assert.deepEqual(await Promise.all(['1', '2', '3'].map((id) => driver.liveness?.(id))), [
      'alive',
      'dead',
      'dead',
    ]);
    await worker.close();
  });

  it('stops when it is aborted', async () => {
    using dir = tempDir();
    const worker = await startFakeKresd(dir.join('1'), { behaviour: 'hang' });
    const stop = new AbortController();
    const asked = driverOf(dir.join('*')).reset('1', { target, timeoutMs: 60_000, signal: stop.signal });
    stop.abort();
    assert.deepEqual(await asked, { kind: 'unreachable', text: `${dir.join('1')}: aborted` });
    await worker.close();
  });

  it('never leaves the configured directory', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('control'));
    const worker = await startFakeKresd(dir.join('elsewhere'));
    const answer = await driverOf(dir.join('control/*')).reset('../elsewhere', { target, timeoutMs: 60_000 });
    assert.equal(answer.kind, 'unreachable');
    assert.equal(worker.connections(), 0);
    await worker.close();
  });
});

describe('the members of a kresd group', () => {
  it('that bind their socket again are other processes', async () => {
    using dir = tempDir();
    const driver = driverOf(dir.join('*'));
    const first = await startFakeKresd(dir.join('1'));
    const seen = [await driver.identity?.('1'), await driver.identity?.('1')];
    await first.close();
    assert.equal(await driver.identity?.('1'), undefined);
    await leaveStaleSocket(dir.join('other'));
    const second = await startFakeKresd(dir.join('1'));
    seen.push(await driver.identity?.('1'));
    await second.close();
    assert.equal(seen[0], seen[1]);
    assert.notEqual(seen[0], seen[2]);
  });

  it('are other processes by the number of the socket, and by its time where that is used again', async () => {
    using dir = tempDir();
    const driver = driverOf(dir.join('*'));
    for (const name of ['1', '2']) {
      await leaveStaleSocket(dir.join(name));
      utimesSync(dir.join(name), 1000, 1000);
    }
    const [one, two] = [await driver.identity?.('1'), await driver.identity?.('2')];
    assert.notEqual(one, two);
    utimesSync(dir.join('1'), 1000, 1001);
    assert.notEqual(await driver.identity?.('1'), one);
  });

  it('are the sockets that the glob names, sorted; files, directories and links are none', async () => {
    using dir = tempDir();
    const workers = [];
    for (const name of ['b1', 'a2', 'a1', '.hidden']) workers.push(await startFakeKresd(dir.join(name)));
    writeFileSync(dir.join('a3'), '');
    mkdirSync(dir.join('a4'));
    symlinkSync('a1', dir.join('a5'));
    assert.deepEqual(await driverOf(dir.join('*')).members(), ['.hidden', 'a1', 'a2', 'b1']);
    assert.deepEqual(await driverOf(dir.join('a?')).members(), ['a1', 'a2']);
    for (const worker of workers) await worker.close();
  });

  it('are none when the directory is not there yet', async () => {
    using dir = tempDir();
    assert.deepEqual(await driverOf(dir.join('control/*')).members(), []);
  });

  it('are an error, not an empty list, if the directory is not a directory', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('control'), '');
    await rejectsCode('WORKER_UNREACHABLE', driverOf(dir.join('control/*')).members());
  });
});

describe('the options of the kresd driver', () => {
  const validate = compileOptions(kresd);
  const good = {
    kresd: '/run/knot-resolver/control/*',
    command: 'policy_reset()',
    expect: '0',
    confirms: true,
  };

  it('take a glob in the last component', () => {
    assert.ok(validate(good));
    assert.ok(validate({ ...good, kresd: '/run/kresd?' }));
  });

  const bad: readonly (readonly [string, object])[] = [
    ['a relative glob', { ...good, kresd: 'control/*' }],
    ['a wildcard in a directory', { ...good, kresd: '/run/*/control' }],
    ['a directory', { ...good, kresd: '/run/control/' }],
    ['a line feed in the command', { ...good, command: 'a()\nb()' }],
    ['an empty command', { ...good, command: '' }],
    ['no expected answer', { kresd: good.kresd, command: good.command }],
    ['a number as the answer', { ...good, expect: 0 }],
  ];
  for (const [what, options] of bad) {
    it(`refuse ${what}`, () => assert.equal(validate(options), false));
  }

  it('refuse a directory that no socket path can be in', () => {
    throwsCode('SOCKET_PATH_TOO_LONG', () => driverOf(`/run/${'d'.repeat(110)}/*`));
  });
});
