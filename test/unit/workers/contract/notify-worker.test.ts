import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer, Driver, Liveness, VerdictClass } from '../../../../src/workers/contract/driver.js';
import { notifyWorker } from '../../../../src/workers/contract/notify-worker.js';
import { findDaemon } from '../../../../src/workers/shared/pid-file.js';

const options = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 1000 };

interface DriverAnswers {
  readonly verdictClass?: VerdictClass;
  readonly reset?: Answer;
  readonly restart?: Answer;
  readonly liveness?: Liveness;
}

function driverThat(answers: DriverAnswers): Driver & { readonly asked: string[] } {
  const asked: string[] = [];
  const verb = (name: string, answer: Answer) => async () => {
    asked.push(name);
    return answer;
  };
  return {
    asked,
    verdictClass: answers.verdictClass ?? 'true',
    members: async () => ['a'],
    reset: verb('reset', answers.reset ?? { kind: 'confirmed', text: 'ok' }),
    ...(answers.restart === undefined ? {} : { restart: verb('restart', answers.restart) }),
    ...(answers.liveness === undefined
      ? {}
      : {
          liveness: async () => {
            asked.push('liveness');
            return answers.liveness ?? 'unknown';
          },
        }),
  };
}

describe('notifyWorker', () => {
  it('accepts a confirmation only from a driver of class true', async () => {
    assert.equal((await notifyWorker(driverThat({}), 'a', options)).kind, 'confirmed');
    for (const verdictClass of ['early', 'silent'] as const)
      assert.equal((await notifyWorker(driverThat({ verdictClass }), 'a', options)).kind, 'notified');
    const refused = driverThat({ verdictClass: 'early', reset: { kind: 'refused', text: 'no' } });
    assert.equal((await notifyWorker(refused, 'a', options)).kind, 'refused');
  });

  it('returns unreachable for a worker that confirmed and then died', async () => {
    for (const kind of ['confirmed', 'notified'] as const) {
      const driver = driverThat({ reset: { kind, text: 'ok' }, liveness: 'dead' });
      assert.deepEqual(await notifyWorker(driver, 'a', options), {
        kind: 'unreachable',
        text: 'answered, then died: ok',
      });
    }
  });

  it('names the missing pid file, because the worker counts as dead only for that reason', async () => {
    const driver: Driver = {
      ...driverThat({ liveness: 'dead' }),
      process: async () => findDaemon('/nonexistent/w.pid'),
    };
    const { kind, text } = await notifyWorker(driver, 'a', options);
    assert.equal(kind, 'unreachable');
    assert.match(
      text,
      /^counts as dead: there is no pid file \/nonexistent\/w\.pid: .*; its answer was: ok$/,
    );
  });

  it('keeps the answer of a worker that is alive, or of unknown liveness', async () => {
    for (const liveness of ['alive', 'unknown'] as const)
      assert.equal((await notifyWorker(driverThat({ liveness }), 'a', options)).kind, 'confirmed');
  });

  it('keeps a refusal, also of a dead worker, because a refusal causes a restore', async () => {
    const driver = driverThat({ reset: { kind: 'refused', text: 'no' }, liveness: 'dead' });
    assert.deepEqual(await notifyWorker(driver, 'a', options), { kind: 'refused', text: 'no' });
  });

  it('does not count a restart as a confirmation', async () => {
    const driver = driverThat({ restart: { kind: 'confirmed', text: 'up' } });
    const answer = await notifyWorker(driver, 'a', { ...options, verb: 'restart' });
    assert.deepEqual(answer, { kind: 'notified', text: 'up' });
    assert.deepEqual(driver.asked, ['restart']);
  });

  it('resets if the driver cannot restart, so that the worker is notified in any case', async () => {
    const driver = driverThat({});
    assert.equal((await notifyWorker(driver, 'a', { ...options, verb: 'restart' })).kind, 'confirmed');
    assert.deepEqual(driver.asked, ['reset']);
  });
});
