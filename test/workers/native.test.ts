import assert from 'node:assert/strict';
import { existsSync, lstatSync, statSync } from 'node:fs';
import { describe, it } from 'node:test';
import { Ajv } from 'ajv';
import { pino } from 'pino';
import { type ErrorCode, isWritError } from '../../src/core/errors.js';
import type { Answer, Driver, DriverContext, Target } from '../../src/workers/driver.js';
import { native } from '../../src/workers/native.js';
import { driverContext } from '../support/driver-context.js';
import { fakeClock } from '../support/fake-clock.js';
import { joinAs, rawWorker } from '../support/raw-worker.js';
import { leaveStaleSocket } from '../support/stale-socket.js';
import { type TempDir, tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const seven: Target = { generation: 7, path: '/policy/generations/7' };
const eight: Target = { generation: 8, path: '/policy/generations/8' };
const timeoutMs = 5000;

interface Setup extends AsyncDisposable {
  readonly driver: Driver;
  readonly path: string;
  readonly late: { worker: string; generation: number; answer: Answer }[];
  readonly codes: () => string[];
}

async function setUp(dir: TempDir, overrides: Partial<DriverContext> = {}, options = {}): Promise<Setup> {
  const late: Setup['late'] = [];
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const context = driverContext({
    log,
    runDirectory: dir.path,
    onLateAnswer: (worker, generation, answer) => void late.push({ worker, generation, answer }),
    ...overrides,
  });
  const driver = native.create({ native: 'access', ...options }, context);
  await driver.open?.();
  return {
    driver,
    path: dir.join('workers/access.sock'),
    late,
    codes: () => lines.map((line) => String(JSON.parse(line).code)),
    [Symbol.asyncDispose]: async () => driver.close?.(),
  };
}

async function membersAre(driver: Driver, wanted: readonly string[]): Promise<void> {
  await until(async () => JSON.stringify(await driver.members()) === JSON.stringify(wanted));
}

describe('the native driver', () => {
  it('takes a worker for alive while it is connected, and for dead when it stays away', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'access-1');
    await membersAre(setup.driver, ['access-1']);
    assert.equal(await setup.driver.liveness?.('access-1'), 'alive');
    const clock = fakeClock({ mode: 'skip' });
    const other = native.create({ native: 'other' }, driverContext({ clock, runDirectory: dir.path }));
    assert.equal(await other.liveness?.('access-1'), 'dead');
    worker.end();
  });

  it('names each connection, so that what one said counts for no other of the same worker', async () => {
    using dir = tempDir();
    const identities: (string | undefined)[] = [];
    await using setup = await setUp(dir, {
      onLateAnswer: (_worker, _generation, _answer, identity) => void identities.push(identity),
    });
    const { driver } = setup;
    driver.activeChanged?.(seven);
    const first = await joinAs(setup.path, 'access-1');
    first.send('{"type":"ack","id":1,"generation":7}\n');
    await until(async () => identities.length === 1);
    assert.equal(identities[0], await driver.identity?.('access-1'));
    first.end();
    await membersAre(driver, []);
    assert.equal(await driver.identity?.('access-1'), undefined);
    const second = await joinAs(setup.path, 'access-1');
    await membersAre(driver, ['access-1']);
    assert.notEqual(await driver.identity?.('access-1'), identities[0]);
    second.end();
  });

  it('speaks the protocol byte for byte', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    setup.driver.activeChanged?.(seven);
    const worker = rawWorker(setup.path);
    assert.equal(await worker.line(), '{"writ":1,"version":"0.1.0"}');
    worker.send('{"writ":1,"version":"9.9.9"}\n{"type":"hello","name":"access-1","pid":4711}\n');
    assert.equal(
      await worker.line(),
      '{"type":"generation","id":1,"generation":7,"path":"/policy/generations/7"}',
    );
    worker.end();
  });

  it('confirms by ack, and refuses by nack with its reason', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const first = setup.driver.reset('a', { target: seven, timeoutMs });
    assert.match(await worker.line(), /"id":1,"generation":7,/);
    worker.send({ type: 'ack', id: 1, generation: 7 });
    assert.equal((await first).kind, 'confirmed');
    const second = setup.driver.reset('a', { target: eight, timeoutMs });
    assert.match(await worker.line(), /"id":2,"generation":8,/);
    worker.send({ type: 'nack', id: 2, generation: 8, reason: 'user eve has no role' });
    assert.deepEqual(await second, { kind: 'refused', text: 'user eve has no role' });
    assert.deepEqual(setup.late, []);
    worker.end();
  });

  it('tells a generation again when it comes back after a refusal', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    for (const [index, target] of [seven, eight, seven].entries()) {
      const asked = setup.driver.reset('a', { target, timeoutMs });
      assert.equal(JSON.parse(await worker.line()).generation, target.generation);
      worker.send({ type: 'ack', id: index + 1, generation: target.generation });
      assert.equal((await asked).kind, 'confirmed');
    }
    worker.end();
  });

  it('hears no answer to an older tell of the generation that the worker is to use again', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    for (const target of [seven, eight]) {
      const ended = new AbortController();
      const asked = setup.driver.reset('a', { target, timeoutMs, signal: ended.signal });
      await worker.line();
      ended.abort();
      await asked;
    }
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    assert.equal(JSON.parse(await worker.line()).id, 3);
    worker.send({ type: 'ack', id: 1, generation: 7 });
    worker.send({ type: 'nack', id: 3, generation: 7, reason: 'half way' });
    assert.deepEqual(await asked, { kind: 'refused', text: 'half way' });
    assert.deepEqual(setup.late, []);
    worker.end();
  });

  it('does not ask twice when a worker that has just come was told already', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    setup.driver.activeChanged?.(seven);
    const worker = await joinAs(setup.path, 'a');
    await worker.line();
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    worker.send({ type: 'ack', id: 1, generation: 7 });
    assert.equal((await asked).kind, 'confirmed');
    assert.deepEqual(setup.late, []);
    worker.end();
  });

  it('reports what a worker that came between cycles says', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    setup.driver.activeChanged?.(seven);
    for (const [name, answer] of [
      ['a', { type: 'ack' }],
      ['b', { type: 'nack', reason: 'no' }],
    ] as const) {
      const worker = await joinAs(setup.path, name);
      await worker.line();
      worker.send({ ...answer, id: 1, generation: 7 });
      await until(() => setup.late.at(-1)?.worker === name);
      worker.end();
    }
    assert.deepEqual(setup.late, [
      { worker: 'a', generation: 7, answer: { kind: 'confirmed', text: 'ack' } },
      { worker: 'b', generation: 7, answer: { kind: 'refused', text: 'no' } },
    ]);
  });

  it('tells nobody anything while nothing is active', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    setup.driver.activeChanged?.(seven);
    setup.driver.activeChanged?.(undefined);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: eight, timeoutMs });
    assert.match(await worker.line(), /"id":1,"generation":8,/);
    worker.end();
    await asked;
  });

  it('cannot reach who hangs, and hears the late answer', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    await using setup = await setUp(dir, { clock });
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    await worker.line();
    await clock.advance(timeoutMs);
    assert.deepEqual(await asked, { kind: 'unreachable', text: 'no answer in 5000 ms' });
    worker.send({ type: 'ack', id: 1, generation: 7 });
    await until(() => setup.late.length > 0);
    assert.equal(setup.late[0]?.answer.kind, 'confirmed');
    worker.end();
  });

  it('waits no longer for an answer that something newer made pointless', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const old = setup.driver.reset('a', { target: seven, timeoutMs });
    const young = setup.driver.reset('a', { target: eight, timeoutMs });
    assert.deepEqual(await old, { kind: 'unreachable', text: 'superseded by generation 8' });
    worker.send({ type: 'ack', id: 2, generation: 8 });
    assert.equal((await young).kind, 'confirmed');
    worker.end();
  });

  it('cannot reach who leaves, or was never there', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    await worker.line();
    worker.end();
    assert.deepEqual(await asked, { kind: 'unreachable', text: 'disconnected before it answered' });
    await membersAre(setup.driver, []);
    assert.equal((await setup.driver.reset('a', { target: seven, timeoutMs })).kind, 'unreachable');
  });

  it('stops asking when it is told to', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const stop = new AbortController();
    const asked = setup.driver.reset('a', { target: seven, timeoutMs, signal: stop.signal });
    stop.abort();
    assert.deepEqual(await asked, { kind: 'unreachable', text: 'aborted' });
    worker.end();
  });

  it('tells workers of one name apart, and gives a free name again', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir);
    const first = await joinAs(setup.path, 'a');
    const second = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a', 'a#2']);
    first.end();
    await membersAre(setup.driver, ['a#2']);
    const third = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a', 'a#2']);
    for (const worker of [second, third]) worker.end();
  });
});

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
    ['a type nobody knows', [greeting, hello, { type: 'pull' }]],
    ['an ack of what it was not told', [greeting, hello, { type: 'ack', id: 1, generation: 7 }]],
    ['a nack without a reason', [greeting, hello, { type: 'nack', id: 1, generation: 7 }]],
    ['a line without end', [greeting, hello, 'x'.repeat(70_000)]],
  ];
  for (const [what, messages] of breaches) {
    it(`is disconnected, and said so: ${what}`, async () => {
      using dir = tempDir();
      await using setup = await setUp(dir);
      const worker = rawWorker(setup.path);
      for (const message of messages) worker.send(message);
      await worker.closed;
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

  it('loses its place when it says no hello in time', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    await using setup = await setUp(dir, { clock });
    const worker = rawWorker(setup.path);
    await worker.line();
    await clock.advance(10_000);
    await worker.closed;
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

  it('is disconnected when it does not read what it is told', async () => {
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
    await rawWorker(setup.path).closed;
    idle[0]?.end();
    await idle[0]?.closed;
    idle[1]?.send({ writ: 1, version: '1' });
    idle[1]?.send({ type: 'hello', name: 'a', pid: 1 });
    await membersAre(setup.driver, ['a']);
    for (const worker of idle) worker.end();
  });
});

describe('the socket of a native group', () => {
  const coded = (code: ErrorCode) => (error: unknown) => isWritError(error) && error.code === code;

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

  it('replaces what a dead agent left, and refuses to take it from a live one', async () => {
    using dir = tempDir();
    {
      await using setup = await setUp(dir);
      await assert.rejects(setUp(dir), coded('SOCKET_IN_USE'));
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
    assert.throws(
      () => native.create({ native: 'access' }, driverContext({ runDirectory: `/${'d'.repeat(100)}` })),
      coded('SOCKET_PATH_TOO_LONG'),
    );
    using dir = tempDir();
    await assert.rejects(setUp(dir, {}, { socketGroup: 'no-such-group' }), coded('CONFIG_INVALID'));
  });

  it('takes no option that would let everybody in', () => {
    const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile({
      type: 'object',
      properties: native.properties,
      required: [native.name, ...native.required],
      additionalProperties: false,
    });
    assert.ok(validate({ native: 'access' }));
    assert.ok(validate({ native: 'access', socketMode: '0660', socketGroup: 'access' }));
    assert.ok(validate({ native: 'access', socketGroup: 1000 }));
    const bad = [{ socketMode: '0666' }, { socketMode: 660 }, { socketGroup: -1 }, { native: '../x' }];
    for (const options of bad) {
      assert.equal(validate({ native: 'access', ...options }), false, JSON.stringify(options));
    }
  });
});
