// The native driver: its notifications, the answers that it accepts, and the identity of its workers.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { native } from '../../../../src/workers/drivers/native.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { until } from '../../../kit/assert/until.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { eight, membersAre, setUp, seven, timeoutMs } from '../../../kit/workers/native-group.js';
import { joinAs, rawWorker } from '../../../kit/workers/raw-worker.js';

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

  it('creates no directory for its socket where other users can write', async () => {
    using dir = tempDir();
    fs.chmodSync(dir.path, 0o777);
    const clock = fakeClock({ mode: 'skip' });
    const driver = native.create({ native: 'other' }, driverContext({ clock, runDirectory: dir.path }));
    await rejectsCode('PATH_UNSAFE', Promise.resolve(driver.open?.()));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('identifies each connection, so that the answer of one does not count for another of the same worker', async () => {
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

  it('withdraws the confirmation of a connected worker that announced pings and answers none', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    await using setup = await setUp(dir, { clock });
    setup.driver.activeChanged?.(seven);
    const worker = rawWorker(setup.path);
    worker.send({ writ: 1, version: '0.1.0' });
    worker.send({ type: 'hello', name: 'a', pid: 4711, ping: true });
    await worker.line();
    assert.match(await worker.line(), /"type":"generation"/);
    worker.send({ type: 'ack', id: 1, generation: 7 });
    await until(() => setup.late.length === 1);
    await clock.advance(30_000);
    assert.equal(await worker.line(), '{"type":"ping","id":1}');
    worker.send({ type: 'pong', id: 1 });
    // Once this answer is read, so is the pong before it.
    const asked = setup.driver.reset('a', { target: eight, timeoutMs });
    assert.match(await worker.line(), /"id":2,"generation":8,/);
    worker.send({ type: 'ack', id: 2, generation: 8 });
    assert.equal((await asked).kind, 'confirmed');
    await clock.advance(30_000);
    await clock.advance(30_000);
    assert.equal(await worker.line(), '{"type":"ping","id":2}');
    await clock.advance(30_000);
    const last = setup.late.at(-1);
    assert.deepEqual([last?.worker, last?.generation, last?.answer.kind], ['a', 7, 'unreachable']);
    assert.match(last?.answer.text ?? '', /did not answer a ping for 30 s/);
    assert.deepEqual(await setup.driver.members(), ['a'], 'its connection stays');
    worker.end();
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

  it('notifies of a generation again when it becomes active again after a refusal', async () => {
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

  it('ignores an answer to an older notification of a generation that is active again', async () => {
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

  it('does not notify a new worker twice', async () => {
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

  it('reports the answer of a worker that connected between cycles', async () => {
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

  it('notifies no worker while no generation is active', async () => {
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

  it('cannot reach a worker that hangs, and accepts its late answer', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    await using setup = await setUp(dir, { clock });
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: seven, timeoutMs });
    await worker.line();
    await clock.advance(timeoutMs);
    assert.deepEqual(await asked, { kind: 'unreachable', text: `no answer in ${timeoutMs} ms` });
    worker.send({ type: 'ack', id: 1, generation: 7 });
    await until(() => setup.late.length > 0);
    assert.equal(setup.late[0]?.answer.kind, 'confirmed');
    worker.end();
  });

  it('stops waiting for an answer when a newer notification replaces it', async () => {
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

  it('cannot reach a worker that disconnected or never connected', async () => {
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

  it('stops when it is aborted', async () => {
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

  it('numbers workers with the same name, and reuses a free number', async () => {
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

describe('the time for native workers to connect', () => {
  it('begins when their driver is created, and ends once', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const driver = native.create({ native: 'access' }, driverContext({ runDirectory: dir.path, clock }));
    assert.equal(driver.mayComeForMs?.(), 6000);
    await clock.advance(4000);
    assert.equal(driver.mayComeForMs?.(), 2000);
    await clock.advance(4000);
    assert.equal(driver.mayComeForMs?.(), 0);
  });
});
