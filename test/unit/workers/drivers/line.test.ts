import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { line } from '../../../../src/workers/drivers/line.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { type FakeLineOptions, startFakeLineServer } from '../../../kit/workers/fake-line-server.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';

const target = { generation: 7, path: '/policy/$&/generations/7' };

function driverOf(path: string, options: object = {}): Driver {
  return line.create({ line: path, send: 'reload', ...options }, driverContext());
}

const bird = {
  send: 'configure',
  greeting: '^0001 ',
  until: '^\\d{4} ',
  expectMatch: '^0003 ',
  confirms: true,
};
const unbound = { send: 'UBCT1 auth_zone_reload b.rpz', expect: 'ok', confirms: true };

async function ask(
  server: FakeLineOptions,
  options: object = {},
  timeoutMs = 60_000,
): Promise<{ readonly answer: Answer; readonly received: readonly string[] }> {
  using dir = tempDir();
  const fake = await startFakeLineServer(dir.join('s'), server);
  try {
    const answer = await driverOf(dir.join('s'), options).reset('s', { target, timeoutMs });
    return { answer, received: fake.received };
  } finally {
    await fake.close();
  }
}

describe('the line driver', () => {
  it('reads to the end of the connection, and confirms only if the configuration defines the answer', async () => {
    const server: FakeLineOptions = { habit: 'unbound' };
    const { answer, received } = await ask(server, unbound);
    assert.deepEqual(answer, { kind: 'confirmed', text: 'ok' });
    assert.deepEqual(received, ['UBCT1 auth_zone_reload b.rpz\n']);
    assert.deepEqual((await ask(server, { expect: 'ok' })).answer, { kind: 'notified', text: 'ok' });
    assert.deepEqual((await ask(server)).answer, { kind: 'notified', text: 'ok' });
  });

  it('notifies a socket of any name if the sent text does not contain the name', async () => {
    using dir = tempDir();
    const fake = await startFakeLineServer(dir.join('a b'), { habit: 'unbound' });
    const kindFor = async (options: object): Promise<string> =>
      (await driverOf(dir.join('*'), { ...unbound, ...options }).reset('a b', { target, timeoutMs: 60_000 }))
        .kind;
    try {
      assert.equal(await kindFor({}), 'confirmed');
      assert.equal(await kindFor({ send: 'reload {worker}' }), 'unreachable');
    } finally {
      await fake.close();
    }
  });

  it('takes any other answer than the expected one for a refusal', async () => {
    for (const text of ['error failed to read b.rpz', 'ok ', ' ok', 'ok ok', '']) {
      const { answer } = await ask({ habit: 'unbound', answer: () => text }, unbound);
      assert.equal(answer.kind, 'refused', JSON.stringify(text));
    }
  });

  it('reads to a final line behind a greeting, byte by byte, without shutting its side', async () => {
    const good = '0002-Reading configuration from /etc/bird.conf\n0003 Reconfigured';
    const server: FakeLineOptions = { habit: 'bird', answer: () => good, chunkBytes: 1 };
    const { answer } = await ask(server, bird);
    assert.equal(answer.kind, 'confirmed');
    assert.match(answer.text, /0003 Reconfigured$/);
    const bad = '0002-Reading configuration from /etc/bird.conf\n8002 bird.conf:7:1 syntax error';
    const no = await ask({ ...server, answer: () => bad }, bird);
    assert.equal(no.answer.kind, 'refused', no.answer.text);
    assert.match(no.answer.text, /syntax error/);
  });

  it('loses the answer of such a daemon when it shuts its side, and gets that of one that waits for it', async () => {
    const lost = await ask(
      { habit: 'bird', answer: () => '0003 Reconfigured' },
      { ...bird, halfClose: true },
      200,
    );
    assert.equal(lost.answer.kind, 'unreachable');
    const waiting = await ask({ habit: 'half-closed' }, { expect: 'ok' }, 100);
    assert.equal(waiting.answer.kind, 'unreachable');
    const shut = await ask({ habit: 'half-closed' }, { expect: 'ok', halfClose: true });
    assert.equal(shut.answer.kind, 'notified');
  });

  it('tries again to connect while the socket of a reloading daemon is away', async () => {
    using dir = tempDir();
    const fake = await startFakeLineServer(dir.join('s'), { habit: 'haproxy', awayMs: 150 });
    const driver = driverOf(dir.join('s'), { expect: '' });
    const first = await driver.reset('s', { target, timeoutMs: 60_000 });
    assert.deepEqual(first, { kind: 'notified', text: 'an empty answer' });
    assert.equal(await driver.liveness?.('s'), 'alive');
    assert.equal((await driver.reset('s', { target, timeoutMs: 60_000 })).kind, 'notified');
    assert.equal(fake.received.length, 2);
    await fake.close();
  });

  it(
    'may be absent for as long as its answer may take, because a long reload is not a death',
    longCase,
    async () => {
      using dir = tempDir();
      await leaveStaleSocket(dir.join('s'));
      const clock = fakeClock({ mode: 'skip' });
      const driver = line.create({ line: dir.join('s'), send: 'reload' }, driverContext({ clock }));
      await driver.reset('s', { target, timeoutMs: 10_000 });
      await driver.reset('s', { target, timeoutMs: 60_000, signal: AbortSignal.abort() });
      const beforeMs = clock.monotonicMs();
      assert.equal(await driver.liveness?.('s'), 'dead');
      assert.ok(
        clock.monotonicMs() - beforeMs >= 59_000,
        'it is waited for until the time of its answer is over',
      );
      const laterMs = clock.monotonicMs();
      assert.equal(await driver.liveness?.('s'), 'dead');
      assert.ok(clock.monotonicMs() - laterMs < 4000, 'and no longer from then on');
    },
  );

  it('is alive according to its pid file, whatever the state of its socket is', async () => {
    using dir = tempDir();
    await leaveStaleSocket(dir.join('s'));
    const pidFile = dir.join('pid');
    const driver = line.create({ line: dir.join('s'), send: 'reload', pidFile }, driverContext());
    writeFileSync(pidFile, `${process.pid}\n`);
    assert.deepEqual([await driver.liveness?.('s'), await driver.pid?.('s')], ['alive', process.pid]);
    writeFileSync(pidFile, '4194305\n');
    assert.equal(await driver.liveness?.('s'), 'dead');
  });

  it('is identified by its pid file, and without one only while a process listens', async () => {
    using dir = tempDir();
    const pidFile = dir.join('pid');
    const driver = line.create({ line: dir.join('s'), send: 'reload', pidFile }, driverContext());
    writeFileSync(pidFile, `${process.pid}\n`);
    assert.match((await driver.identity?.('s')) ?? '', new RegExp(`^${process.pid}@\\d+$`));
    writeFileSync(pidFile, '4194305\n');
    assert.equal(await driver.identity?.('s'), undefined);
    assert.equal(await driverOf(dir.join('s')).identity?.('s'), undefined);
  });

  it('takes silence for no verdict, because a stopped daemon is silent too', async () => {
    const mute = async (options: object): Promise<Answer> => (await ask({ habit: 'mute' }, options)).answer;
    assert.equal((await mute({ expect: '', confirms: true })).kind, 'notified');
    assert.equal((await mute({ expectMatch: '.*', confirms: true })).kind, 'notified');
    assert.equal((await mute(unbound)).kind, 'unreachable');
    const empty = { expect: '', confirms: true };
    assert.equal((await ask({ habit: 'unbound', answer: () => '' }, empty)).answer.kind, 'confirmed');
    assert.equal((await ask({ habit: 'unbound', answer: () => 'no' }, empty)).answer.kind, 'refused');
  });

  it('does not notify a daemon endlessly that closes every connection unread', async () => {
    using dir = tempDir();
    const fake = await startFakeLineServer(dir.join('s'), { habit: 'unread' });
    const answer = await driverOf(dir.join('s')).reset('s', { target, timeoutMs: 60_000 });
    assert.equal(answer.kind, 'unreachable');
    assert.equal(fake.connections(), 4);
    await fake.close();
    const talks = await startFakeLineServer(dir.join('t'), { habit: 'unread', answer: () => 'o' });
    const half = await driverOf(dir.join('t'), { expect: 'ok' }).reset('t', { target, timeoutMs: 60_000 });
    assert.equal(half.kind, 'unreachable');
    assert.equal(talks.connections(), 1, 'what has said something may have read something');
    await talks.close();
  });

  it('fills the generation in, by path and by number', async () => {
    const { received } = await ask(
      { habit: 'unbound' },
      { send: 'load {current}/a {generation} {worker}\n' },
    );
    assert.deepEqual(received, ['load /policy/$&/generations/7/a 7 s\n']);
  });

  it('ignores an answer for another generation, if the answer must name it', async () => {
    const options = { send: 'load', expect: 'uses {generation}', confirms: true };
    assert.equal((await ask({ habit: 'unbound', answer: () => 'uses 7' }, options)).answer.kind, 'confirmed');
    assert.equal((await ask({ habit: 'unbound', answer: () => 'uses 6' }, options)).answer.kind, 'refused');
  });

  it('cannot reach a daemon that hangs, is cut off, or talks without end', async () => {
    const hanging = await ask({ habit: 'hang' }, unbound, 50);
    assert.equal(hanging.answer.kind, 'unreachable');
    assert.match(hanging.answer.text, /no answer in 50 ms/);
    const cut = await ask({ habit: 'cut' }, { end: 'line', expect: 'ok' });
    assert.match(cut.answer.text, /closed before its answer was complete/);
    const endless = await ask({ habit: 'endless', answer: () => 'x'.repeat(9999) }, unbound);
    assert.equal(endless.answer.kind, 'unreachable');
    assert.match(endless.answer.text, /more than 64000 bytes/);
  });

  it('cannot reach a daemon that died or is not up, and reports how long it tried', longCase, async () => {
    using dir = tempDir();
    await leaveStaleSocket(dir.join('s'));
    const driver = driverOf(dir.join('s'));
    const impatient = driverContext({ clock: fakeClock({ mode: 'skip' }) });
    const looking = line.create({ line: dir.join('s'), send: 'reload' }, impatient);
    assert.equal(await looking.liveness?.('s'), 'dead');
    const dead = await driver.reset('s', { target, timeoutMs: 1000 });
    assert.deepEqual(dead, { kind: 'unreachable', text: `${dir.join('s')}: ECONNREFUSED for 1000 ms` });
    const absent = await driverOf(dir.join('t')).reset('t', { target, timeoutMs: 1000 });
    assert.deepEqual(absent, { kind: 'unreachable', text: `${dir.join('t')}: ENOENT for 1000 ms` });
    const stop = new AbortController();
    const asked = driver.reset('s', { target, timeoutMs: 60_000, signal: stop.signal });
    stop.abort();
    assert.equal((await asked).text, `${dir.join('s')}: aborted`);
  });

  it('gives no verdict for a pattern that would run for years', longCase, async () => {
    const answer = (): string => `${'a'.repeat(60)}b`;
    const slow = await ask({ habit: 'unbound', answer }, { expectMatch: '^(a+)+$' });
    assert.equal(slow.answer.kind, 'unreachable');
    const until = await ask({ habit: 'unbound', answer }, { until: '^(a+)+$' });
    assert.match(until.answer.text, /`until` takes too long/);
  });

  it('never leaves the configured directory, and fills in no name that is more than a name', async () => {
    using dir = tempDir();
    const fake = await startFakeLineServer(dir.join('a b'), { habit: 'unbound' });
    const driver = driverOf(dir.join('*'), { send: 'reload {worker}' });
    assert.equal((await driver.reset('a b', { target, timeoutMs: 60_000 })).kind, 'unreachable');
    assert.equal((await driver.reset('../a', { target, timeoutMs: 60_000 })).kind, 'unreachable');
    assert.deepEqual(fake.received, []);
    const below = driverOf(dir.join('set/*'));
    assert.equal((await below.reset('../a b', { target, timeoutMs: 60_000 })).kind, 'unreachable');
    assert.deepEqual(fake.received, []);
    await fake.close();
  });
});

describe('the members of a line group', () => {
  it('are the sockets of a glob, or the one of a path, there or not', async () => {
    using dir = tempDir();
    assert.deepEqual(await driverOf(dir.join('b.ctl')).members(), ['b.ctl']);
    assert.deepEqual(await driverOf(dir.join('*.ctl')).members(), []);
    await leaveStaleSocket(dir.join('b.ctl'));
    await leaveStaleSocket(dir.join('a.ctl'));
    assert.deepEqual(await driverOf(dir.join('*.ctl')).members(), ['a.ctl', 'b.ctl']);
  });
});

describe('members of a line group that a command names', () => {
  it('have a socket of their own each', async () => {
    using dir = tempDir();
    const fake = await startFakeLineServer(dir.join('a.ctl'), { habit: 'unbound' });
    const driver = driverOf(dir.join('{worker}.ctl'), { expect: 'ok', members: { run: ['echo', 'a'] } });
    assert.deepEqual(await driver.members(), ['a']);
    assert.equal((await driver.reset('a', { target, timeoutMs: 60_000 })).kind, 'notified');
    assert.equal(await driver.liveness?.('a'), 'alive');
    assert.equal((await driver.reset('a b', { target, timeoutMs: 60_000 })).kind, 'unreachable');
    const long = 'a'.repeat(108);
    assert.match((await driver.reset(long, { target, timeoutMs: 60_000 })).text, /path is too long/);
    assert.equal(await driver.liveness?.(long), 'unknown');
    await fake.close();
  });
});

describe('the options of the line driver', () => {
  const validate = compileOptions(line);
  const good = { line: '/run/bird/bird.ctl', send: 'configure' };

  it('take a path, a text and an end', () => {
    assert.ok(validate(good));
    assert.ok(validate({ ...good, ...bird, halfClose: false }));
    assert.equal(driverOf('/run/s', bird).verdictClass, 'true');
    assert.equal(driverOf('/run/s', { expect: 'ok' }).verdictClass, 'early');
  });

  for (const bad of [
    { line: '/run/bird/bird.ctl' },
    { ...good, line: 'bird.ctl' },
    { ...good, line: '/run/*/bird.ctl' },
    { ...good, send: '' },
    { ...good, end: 'never' },
    { ...good, expect: 1 },
    { ...good, confirms: 'yes' },
  ]) {
    it(`refuse ${JSON.stringify(bad)}`, () => assert.equal(validate(bad), false));
  }

  const contradictions: readonly (readonly [string, object])[] = [
    ['confirms without an expected answer', { confirms: true }],
    ['two expected answers', { expect: 'ok', expectMatch: 'ok' }],
    ['two ends', { end: 'eof', until: '^a' }],
    ['a pattern that is none', { expectMatch: '(' }],
    ['an end that is no pattern', { until: '(' }],
    ['a greeting that is no pattern', { greeting: '(' }],
    ['members without {worker}', { members: { run: ['list'] } }],
    ['an unknown placeholder in the expected answer', { expect: '{bundle}' }],
    ['an unknown placeholder', { send: 'reload {bundle}' }],
  ];
  for (const [what, options] of contradictions) {
    it(`refuse ${what}`, () => {
      throwsCode('CONFIG_INVALID', () => driverOf('/run/s', options));
    });
  }
});
