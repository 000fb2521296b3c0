// Workers that violate the native protocol, and a socket that other users must not open.
import assert from 'node:assert/strict';
import { existsSync, lstatSync, statSync } from 'node:fs';
import { describe, it } from 'node:test';
import { native } from '../../../../src/workers/drivers/native.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { eight, membersAre, setUp, seven, timeoutMs } from '../../../kit/workers/native-group.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';
import { joinAs, rawWorker } from '../../../kit/workers/raw-worker.js';

describe('a worker that breaks the protocol', () => {
  const hello = { type: 'hello', name: 'a', pid: 1 };
  const greeting = { writ: 1, version: '1' };
  const breaches: readonly (readonly [string, readonly (object | string | Uint8Array)[]])[] = [
    ['no JSON', ['hello\n']],
    ['bytes that are no UTF-8', [Buffer.from('{"writ":1,"version":"\xff"}\n', 'latin1')]],
    ['an array', ['[]\n']],
    ['another protocol', [{ writ: 2, version: '1' }]],
    ['hello before the greeting', [hello]],
    ['an answer before hello', [greeting, { type: 'ack', id: 1, generation: 7 }]],
    ['hello twice', [greeting, hello, hello]],
    ['a name that is none', [greeting, { ...hello, name: '../a' }]],
    ['a name that is too long', [greeting, { ...hello, name: 'a'.repeat(65) }]],
    ['no pid', [greeting, { ...hello, pid: 'x' }]],
    ['an unknown type', [greeting, hello, { type: 'pull' }]],
    ['an ack of an id that was not sent', [greeting, hello, { type: 'ack', id: 1, generation: 7 }]],
    ['a nack without a reason', [greeting, hello, { type: 'nack', id: 1, generation: 7 }]],
    ['a line without end', [greeting, hello, 'x'.repeat(70_000)]],
  ];
  for (const [what, messages] of breaches) {
    it(`is disconnected with an error: ${what}`, async () => {
      using dir = tempDir();
      await using setup = await setUp(dir);
      const worker = rawWorker(setup.path);
      for (const message of messages) worker.send(message);
      await worker.closed();
      await membersAre(setup.driver, []);
      assert.deepEqual(setup.codes(), ['MESSAGE_MALFORMED']);
    });
  }

  it('is disconnected for another generation than the id means, and its reset ends', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    worker.send({ type: 'ack', id: 1, generation: 8 });
    assert.equal((await asked).kind, 'unreachable');
    assert.deepEqual(setup.codes(), ['MESSAGE_MALFORMED']);
  });

  it('is forgiven when it answers twice', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    worker.send({ type: 'ack', id: 1, generation: 7 });
    worker.send({ type: 'nack', id: 1, generation: 7, reason: 'changed my mind' });
    assert.equal((await asked).kind, 'confirmed');
    const next = setup.driver.reset('a', { target: eight, timeoutMs });
    worker.send({ type: 'ack', id: 2, generation: 8 });
    assert.equal((await next).kind, 'confirmed');
    assert.deepEqual(setup.late, []);
    worker.end();
  });

  it('loses its connection slot when it sends no hello in time', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    await using setup = await setUp(dir, { clock });
    const worker = rawWorker(setup.path);
    await worker.line();
    await clock.advance(10_000);
    await worker.closed();
    assert.deepEqual(setup.codes(), ['MESSAGE_MALFORMED']);
  });

  it('has its reason cut to a kilobyte, and still vetoes', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    worker.send({ type: 'nack', id: 1, generation: 7, reason: 'é'.repeat(3000) });
    const answer = await asked;
    assert.equal(answer.kind, 'refused');
    assert.ok(Buffer.byteLength(answer.text) <= 1024);
    worker.end();
  });

  it('is disconnected when it does not read its notifications', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    worker.pause();
    const path = `/${'p'.repeat(60_000)}`;
    const asked = Array.from({ length: 20 }, (_, index) =>
      setup.driver.reset('a', { target: { generation: index + 1, path }, timeoutMs: 60_000 }),
    );
    for (const answer of await Promise.all(asked)) assert.equal(answer.kind, 'unreachable');
    await membersAre(setup.driver, []);
    assert.ok(setup.codes().includes('MESSAGE_MALFORMED'));
    worker.end();
  });

  it('cannot keep others out by holding connections: the 257th is refused, the rest work', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const idle = Array.from({ length: 256 }, () => rawWorker(setup.path));
    await Promise.all(idle.map((worker) => worker.line()));
    await rawWorker(setup.path).closed();
    idle[0]?.end();
    await idle[0]?.closed();
    idle[1]?.send({ writ: 1, version: '1' });
    idle[1]?.send({ type: 'hello', name: 'a', pid: 1 });
    await membersAre(setup.driver, ['a']);
    for (const worker of idle) worker.end();
  });
});

describe('the socket of a native group', () => {
  it('has mode 0660, or the configured mode and group', async () => {
    using dir = tempDir();
    {
      await using setup = await setUp(dir);
      assert.equal(lstatSync(setup.path).mode & 0o7777, 0o660);
      assert.equal(statSync(dir.join('workers')).mode & 0o7777, 0o755);
    }
    assert.equal(existsSync(dir.join('workers/access.sock')), false);
    const gid = process.getgid?.() ?? 0;
    await using setup = await setUp(dir, {}, { socketMode: '0600', socketGroup: gid });
    assert.equal(lstatSync(setup.path).mode & 0o7777, 0o600);
    assert.equal(lstatSync(setup.path).gid, gid);
  });

  it('replaces the socket of a dead agent, and refuses to replace that of a running one', async () => {
    using dir = tempDir();
    {
      await using setup = await setUp(dir);
      await rejectsCode('SOCKET_IN_USE', setUp(dir));
      const worker = await joinAs(setup.path, 'a');
      await membersAre(setup.driver, ['a']);
      worker.end();
    }
    await leaveStaleSocket(dir.join('workers/access.sock'));
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'b');
    await membersAre(setup.driver, ['b']);
    worker.end();
  });

  it('is refused when its path is too long or its group is unknown', async () => {
    throwsCode('SOCKET_PATH_TOO_LONG', () =>
      native.create({ native: 'access' }, driverContext({ runDirectory: `/${'d'.repeat(100)}` })),
    );
    using dir = tempDir();
    await rejectsCode('CONFIG_INVALID', setUp(dir, {}, { socketGroup: 'no-such-group' }));
  });

  it('refuses an option that would permit all users', () => {
    const validate = compileOptions(native);
    assert.ok(validate({ native: 'access' }));
    assert.ok(validate({ native: 'access', socketMode: '0660', socketGroup: 'access' }));
    assert.ok(validate({ native: 'access', socketGroup: 1000 }));
    const bad = [{ socketMode: '0666' }, { socketMode: 660 }, { socketGroup: -1 }, { native: '../x' }];
    for (const options of bad) {
      assert.equal(validate({ native: 'access', ...options }), false, JSON.stringify(options));
    }
  });
});
