import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Clock } from '../../../../src/platform/time/clock.js';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { supervisord } from '../../../../src/workers/drivers/supervisord.js';
import { until } from '../../../kit/assert/until.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { skippedPauses } from '../../../kit/clock/skipped-pauses.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import {
  type FakeAnswer,
  startFakeSupervisord,
  xmlArray,
  xmlFault,
  xmlProcess,
  xmlTrue,
} from '../../../kit/workers/fake-supervisord.js';
import { driverOf, running, stopped } from '../../../kit/workers/supervisord-driver.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 60_000 };

/** Interval between two checks of a process. */
const pauseMs = 200;

interface Asked {
  readonly answer: Answer;
  readonly calls: readonly string[];
}

async function ask(
  answer: (method: string, params: readonly string[]) => FakeAnswer,
  options: {
    verb?: 'reset' | 'restart';
    timeoutMs?: number;
    status?: number;
    driver?: object;
    clock?: Clock;
  } = {},
): Promise<Asked> {
  using dir = tempDir();
  const fake = await startFakeSupervisord(dir.join('s'), answer, options);
  const context = options.clock === undefined ? {} : { clock: options.clock };
  const driver = driverOf(dir.join('s'), options.driver, driverContext(context));
  const timeoutMs = options.timeoutMs ?? reset.timeoutMs;
  try {
    return { answer: await notify(driver, options.verb ?? 'reset', timeoutMs), calls: fake.calls };
  } finally {
    await fake.close();
  }
}

async function notify(driver: Driver, verb: 'reset' | 'restart', timeoutMs: number): Promise<Answer> {
  const answer = await driver[verb]?.('web:a', { ...reset, timeoutMs });
  assert.ok(answer !== undefined);
  return answer;
}

describe('a signal through supervisord', () => {
  it('signals one process, and reports only that', async () => {
    const { answer, calls } = await ask(() => xmlTrue);
    assert.deepEqual(answer, { kind: 'notified', text: 'SIGHUP sent to web:a' });
    assert.deepEqual(calls, ['getProcessInfo web:a', 'signalProcess web:a HUP']);
    assert.equal(driverOf('/run/s').verdictClass, 'silent');
  });

  it('waits for a process that starts, and does not signal one that is not up in time', async () => {
    const looks = [10, 10, 20];
    const starting = (state: number): string =>
      xmlProcess({ group: 'web', name: 'a', state, stateName: '', pid: 7 });
    const { answer, calls } = await ask((method) =>
      method === 'getProcessInfo' ? starting(looks.shift() ?? 20) : xmlTrue,
    );
    assert.equal(answer.kind, 'notified');
    assert.deepEqual(calls.at(-1), 'signalProcess web:a HUP');
    assert.equal(calls.length, 4);
    const late = await ask(() => starting(10), { timeoutMs: 500 });
    assert.equal(late.answer.kind, 'unreachable');
    assert.match(late.answer.text, /STARTING/);
    assert.ok(!late.calls.some((call) => call.startsWith('signalProcess')));
  });

  const entry = (status: number, description: string): string =>
    `<struct><member><name>status</name><value><int>${status}</int></value></member>` +
    `<member><name>description</name><value><string>${description}</string></value></member></struct>`;

  it('counts as sent if every entry of the answer succeeds', async () => {
    const { answer } = await ask(() => xmlArray([entry(80, 'OK'), entry(80, 'OK')]));
    assert.equal(answer.kind, 'notified');
  });

  const failures: readonly (readonly [string, FakeAnswer, RegExp])[] = [
    ['an empty list', xmlArray([]), /empty answer/],
    ['BAD_SIGNAL among its entries', xmlArray([entry(80, 'OK'), entry(11, 'BAD_SIGNAL')]), /11 BAD_SIGNAL/],
    ['NOT_RUNNING', xmlFault(70, 'NOT_RUNNING: web:a'), /NOT_RUNNING/],
    ['BAD_NAME', xmlFault(10, 'BAD_NAME: web:a'), /BAD_NAME/],
    ['false', '<boolean>0</boolean>', /without a verdict on the process/],
    ['a text', '<string>ok</string>', /without a verdict on the process/],
    ['a list of something else', xmlArray(['<string>ok</string>']), /status undefined/],
    ['a page', Buffer.from('<html>ok</html>'), /does not speak XML-RPC/],
    ['more than 4 MB', Buffer.alloc(4_000_001, ' '), /longer than/],
    ['nothing in time', 'hang', /no answer in 1000 ms/],
  ];
  for (const [what, said, text] of failures) {
    it(`counts as not sent if the answer is ${what}`, async () => {
      const { answer } = await ask(() => said, { timeoutMs: what.includes('in time') ? 1000 : 60_000 });
      assert.equal(answer.kind, 'unreachable');
      assert.match(answer.text, text);
    });
  }

  for (const [state, text] of [
    [stopped, /^web:a is STOPPED: a person stopped it, or it was never started/],
    [{ ...stopped, state: 200, stateName: 'FATAL' }, /NOT_RUNNING: web:a$/],
  ] as const)
    it(`gives the reason of a process that does not run and is ${state.stateName}`, async () => {
      const { answer } = await ask((method) =>
        method === 'getProcessInfo'
          ? xmlProcess({ group: 'web', name: 'a', ...state })
          : xmlFault(70, 'NOT_RUNNING: web:a'),
      );
      assert.equal(answer.kind, 'unreachable');
      assert.match(answer.text, text);
    });

  it('counts as not sent if the status is not 200, as without a password', async () => {
    const { answer } = await ask(() => xmlTrue, { status: 401 });
    assert.equal(answer.kind, 'unreachable');
    assert.match(answer.text, /status 401/);
  });

  it('cannot reach a supervisord that is dead or not there', async () => {
    using dir = tempDir();
    await leaveStaleSocket(dir.join('stale'));
    const dead = await driverOf(dir.join('stale')).reset('web:a', reset);
    assert.deepEqual(dead, { kind: 'unreachable', text: `${dir.join('stale')}: web:a: ECONNREFUSED` });
    const absent = await driverOf(dir.join('none')).reset('web:a', reset);
    assert.match(absent.text, /ENOENT/);
  });

  it('sends the Authorization header of its file, and does not reveal it', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('secret'), 'Basic d3JpdDpzZWNyZXQ=\n');
    const options = { group: 'web', signal: 'HUP', authorizationFile: dir.join('secret') };
    assert.equal((await ask(() => xmlTrue, { driver: options })).answer.kind, 'notified');
    const refusal = await ask(() => xmlTrue, { driver: options, status: 401 });
    assert.ok(!refusal.answer.text.includes('d3JpdDpzZWNyZXQ'));
    for (const bad of ['', 'Basic a\nX-Other: b\n', '\u0001']) {
      writeFileSync(dir.join('secret'), bad);
      const { answer, calls } = await ask(() => xmlTrue, { driver: options });
      assert.equal(answer.kind, 'unreachable', JSON.stringify(bad));
      assert.match(answer.text, /one line of printable ASCII/);
      assert.deepEqual(calls, []);
    }
  });
});

describe('a restart through supervisord', () => {
  it('stops, waits, starts, waits, and claims nothing of what was read', async () => {
    const { answer, calls } = await ask(() => xmlTrue, { verb: 'restart' });
    assert.deepEqual(answer, { kind: 'notified', text: 'web:a stopped and started' });
    assert.deepEqual(calls, ['stopProcess web:a 1', 'startProcess web:a 1']);
  });

  it('is what a reset does where no signal is configured', async () => {
    const { calls } = await ask(() => xmlTrue, { driver: { group: 'web' } });
    assert.deepEqual(calls, ['stopProcess web:a 1', 'startProcess web:a 1']);
  });

  it('starts a dead process, and accepts one that another client started', async () => {
    const faults: Record<string, string> = {
      stopProcess: xmlFault(70, 'NOT_RUNNING: web:a'),
      startProcess: xmlFault(60, 'ALREADY_STARTED: web:a'),
    };
    assert.equal((await ask((method) => faults[method] ?? '', { verb: 'restart' })).answer.kind, 'notified');
  });

  it('is a refusal if the process ends during its start, and no verdict if it cannot be started', async () => {
    const start = (fault: string) => (method: string) => (method === 'startProcess' ? fault : xmlTrue);
    const fatal = { group: 'web', name: 'a', state: 200, stateName: 'FATAL', pid: 0 };
    const abnormal = (method: string): string =>
      method === 'getProcessInfo'
        ? xmlProcess({ ...fatal, spawnError: 'Exited too quickly (process log may have details)' })
        : start(xmlFault(40, 'ABNORMAL_TERMINATION: web:a'))(method);
    const ended = await ask(abnormal, { verb: 'restart' });
    assert.deepEqual(ended.answer, { kind: 'refused', text: 'web:a ended while it started' });
    const spawn = (spawnError: string) => (method: string) => {
      if (method === 'getProcessInfo') return xmlProcess({ ...fatal, spawnError });
      return start(xmlFault(50, 'SPAWN_ERROR: web:a'))(method);
    };
    const quick = 'Exited too quickly (process log may have details)';
    assert.equal((await ask(spawn(quick), { verb: 'restart' })).answer.kind, 'refused');
    const unstartable = await ask(spawn("can't find command"), { verb: 'restart' });
    assert.equal(unstartable.answer.kind, 'unreachable');
    assert.match(unstartable.answer.text, /it was stopped, and: SPAWN_ERROR/);
  });

  it('waits for what becomes of a process that supervisord tries to start again by itself', async () => {
    const quick = 'Exited too quickly (process log may have details)';
    const backoff = { state: 30, stateName: 'BACKOFF', pid: 0, spawnError: quick };
    const starting = { state: 10, stateName: 'STARTING', pid: 101 };
    const fatal = { state: 200, stateName: 'FATAL', pid: 0 };
    const after = async (...seen: readonly object[]): Promise<Answer> => {
      const left = [...seen];
      const asked = await ask(
        (method) => {
          if (method === 'stopProcess') return xmlTrue;
          if (method === 'startProcess') return xmlFault(50, 'SPAWN_ERROR: web:a');
          const next = { ...running, ...(left.length > 1 ? left.shift() : left[0]) };
          return xmlProcess({ group: 'web', name: 'a', ...next });
        },
        { verb: 'restart', timeoutMs: 1500, clock: skippedPauses(pauseMs) },
      );
      return asked.answer;
    };
    assert.equal((await after(starting, running)).kind, 'notified');
    assert.equal((await after(backoff, running)).kind, 'notified');
    // Supervisord removes the text at each new attempt, so that seeing it once is enough.
    assert.equal((await after(backoff, starting, fatal)).kind, 'refused');
    assert.equal((await after(backoff, starting)).kind, 'refused');
    assert.equal((await after(starting)).kind, 'unreachable');
  });

  it('does not start what it could not stop', async () => {
    const { answer, calls } = await ask(() => xmlFault(10, 'BAD_NAME: web:a'), { verb: 'restart' });
    assert.equal(answer.kind, 'unreachable');
    assert.deepEqual(calls, ['stopProcess web:a 1']);
  });

  it('starts a process again if its stop took longer than its deadline', async () => {
    let asked = 0;
    let isStopAsked = false;
    const patient = skippedPauses(pauseMs);
    const isOfStop = (delayMs: number): boolean => delayMs === 1500 && asked === 0;
    const clock: Clock = {
      ...patient,
      sleep: (delayMs, signal) =>
        isOfStop(delayMs) ? until(() => isStopAsked) : patient.sleep(delayMs, signal),
    };
    const { answer, calls } = await ask(
      (method) => {
        if (method === 'stopProcess') {
          isStopAsked = true;
          return 'hang';
        }
        if (method === 'startProcess') return xmlTrue;
        asked += 1;
        const stopping = { state: 40, stateName: 'STOPPING', pid: 100 };
        return xmlProcess({ group: 'web', name: 'a', ...(asked < 2 ? stopping : stopped) });
      },
      { verb: 'restart', timeoutMs: 1500, clock },
    );
    assert.equal(answer.kind, 'notified');
    assert.deepEqual(calls, [
      'stopProcess web:a 1',
      'getProcessInfo web:a',
      'getProcessInfo web:a',
      'startProcess web:a 1',
    ]);
  });

  it('gives up on a process that does not stop, and does not start it a second time', async () => {
    using dir = tempDir();
    const fake = await startFakeSupervisord(dir.join('s'), () => 'hang');
    const clock = fakeClock({ mode: 'skip' });
    const driver = supervisord.create({ supervisord: dir.join('s'), group: 'web' }, driverContext({ clock }));
    const answer = await notify(driver, 'restart', 60);
    assert.equal(answer.kind, 'unreachable');
    assert.match(answer.text, /does not stop/);
    assert.ok(!fake.calls.some((call) => call.startsWith('startProcess')));
    await fake.close();
  });

  it('stops no process after an abort, but starts one that it stopped', async () => {
    using dir = tempDir();
    const stop = new AbortController();
    const fake = await startFakeSupervisord(dir.join('s'), (method) => {
      if (method === 'stopProcess') stop.abort();
      return xmlTrue;
    });
    const driver = driverOf(dir.join('s'), { group: 'web' });
    const answer = await driver.restart?.('web:a', { ...reset, signal: stop.signal });
    assert.equal(answer?.kind, 'notified');
    const late = await driver.restart?.('web:a', { ...reset, signal: stop.signal });
    assert.equal(late?.kind, 'unreachable');
    assert.deepEqual(fake.calls, ['stopProcess web:a 1', 'startProcess web:a 1']);
    await fake.close();
  });
});
