import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyProbeResults } from '../../../../src/agent/notify/notify-steps.js';
import {
  isPending,
  nextNotificationAtMs,
  noteLateAnswer,
  noteWorkers,
  notifiableWorkers,
  notifyDelayMs,
  pendingGroups,
  withWantedGeneration,
} from '../../../../src/agent/notify/worker-ledger.js';
import type { WorkerResult } from '../../../../src/core/cycle/cycle-report.js';
import { ledgerWith } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const stateOf = (test: TestHost, key: string): string | undefined =>
  test.host.ledger.read().workers[key]?.state;

describe('the ledger of workers', () => {
  const result = (generation: number, state: WorkerResult['state']): WorkerResult => ({
    group: 'app',
    worker: 'a',
    state,
    generation,
    text: 'x'.repeat(1000),
    atMs: 7,
  });

  it('changes the wanted generation of the notified groups only', async () => {
    using test = testHost({ groups: { app: {}, other: {} } });
    const { host } = test;
    noteWorkers(host, [result(1, 'confirmed'), { ...result(1, 'confirmed'), group: 'other' }]);
    const groups = host.groups.filter((one) => one.config.name === 'app');
    const { workers } = withWantedGeneration(host.ledger.read(), groups, {
      generation: 2,
      nowMs: 9,
      verbOf: () => 'reset',
    });
    assert.deepEqual(
      [workers['app/a']?.wanted, workers['app/a']?.confirmed, workers['app/a']?.state],
      [2, 1, 'pending'],
    );
    assert.equal(workers['other/a']?.wanted, 1);
  });

  it('keeps a pending restart until the worker answers, also if the wanted generation changes', () => {
    using test = testHost({ groups: { app: {} } });
    const { ledger, groups } = test.host;
    const want = (generation: number, verb: 'reset' | 'restart') =>
      ledger.write(withWantedGeneration(ledger.read(), groups, { generation, nowMs: 9, verbOf: () => verb }));
    const pendingAction = () => ledger.read().workers['app/a']?.owed;
    noteWorkers(test.host, [result(1, 'confirmed')]);
    want(2, 'restart');
    want(3, 'reset');
    noteWorkers(test.host, [result(3, 'unreachable')]);
    assert.equal(pendingAction(), 'restart');
    noteWorkers(test.host, [result(3, 'notified')]);
    assert.equal(pendingAction(), undefined);
    want(4, 'reset');
    assert.equal(pendingAction(), undefined);
  });

  it('keeps the time since which a state holds, and limits the text of an answer', () => {
    using test = testHost();
    noteWorkers(test.host, [result(1, 'confirmed')]);
    noteWorkers(test.host, [{ ...result(1, 'confirmed'), atMs: 99 }]);
    const known = test.host.ledger.read().workers['app/a'];
    assert.deepEqual([known?.atMs, known?.text.length], [7, 500]);
  });

  it('has the time of the answer of a process, although another process confirmed the same generation before', () => {
    using test = testHost();
    noteWorkers(test.host, [{ ...result(1, 'confirmed'), process: 'first' }]);
    noteLateAnswer(test.host, { ...result(1, 'confirmed'), process: 'second', atMs: 99 }, 1);
    assert.equal(test.host.ledger.read().workers['app/a']?.atMs, 99);
  });

  it('keeps the time of a confirmation by a probe besides the time of the notification', async () => {
    using test = testHost();
    const notified = { ...result(1, 'notified'), notificationId: 'c-1.1' };
    noteWorkers(test.host, [notified]);
    const probed = { seen: new Map([['app', 60]]), withoutVerdict: new Map() };
    noteWorkers(test.host, await applyProbeResults([], probed, [notified]));
    const known = test.host.ledger.read().workers['app/a'];
    assert.deepEqual([known?.state, known?.atMs, known?.notifiedAtMs], ['confirmed', 60, 7]);
  });

  it('records a late answer about the wanted generation', () => {
    using test = testHost();
    noteWorkers(test.host, [result(2, 'unreachable')]);
    noteLateAnswer(test.host, result(2, 'confirmed'), 2);
    assert.deepEqual(
      [stateOf(test, 'app/a'), test.host.ledger.read().workers['app/a']?.confirmed],
      ['confirmed', 2],
    );
  });

  it('ignores a late answer about an older generation, which would become the wanted one again', () => {
    using test = testHost();
    noteWorkers(test.host, [result(3, 'unreachable')]);
    noteLateAnswer(test.host, result(2, 'confirmed'), 3);
    const known = test.host.ledger.read().workers['app/a'];
    assert.deepEqual([known?.wanted, known?.state, known?.confirmed], [3, 'unreachable', undefined]);
  });

  it('records a late answer about the active generation of a worker that the last move did not affect', () => {
    using test = testHost();
    noteWorkers(test.host, [result(2, 'confirmed')]);
    noteLateAnswer(test.host, result(3, 'refused'), 3);
    const known = test.host.ledger.read().workers['app/a'];
    assert.deepEqual([known?.wanted, known?.state, known?.confirmed], [3, 'refused', 2]);
  });

  it('adds an unknown worker that answers about the active generation', () => {
    using test = testHost();
    noteLateAnswer(test.host, result(1, 'confirmed'), 2);
    assert.equal(stateOf(test, 'app/a'), undefined);
    noteLateAnswer(test.host, result(2, 'confirmed'), 2);
    assert.equal(stateOf(test, 'app/a'), 'confirmed');
  });

  it('ignores late answers under always new names, which would fill it', () => {
    using test = testHost();
    const many = Array.from({ length: 2048 }, (_, at) => ({ ...result(2, 'confirmed'), worker: `w${at}` }));
    noteWorkers(test.host, many);
    noteLateAnswer(test.host, { ...result(2, 'refused'), worker: 'new' }, 2);
    assert.equal(stateOf(test, 'app/new'), undefined);
    noteLateAnswer(test.host, { ...result(2, 'refused'), worker: 'w7' }, 2);
    noteLateAnswer(test.host, { ...result(2, 'confirmed'), group: 'other' }, 2);
    assert.deepEqual([stateOf(test, 'app/w7'), stateOf(test, 'other/a')], ['refused', 'confirmed']);
  });

  it('counts failed attempts, with a backoff that grows to five minutes', () => {
    assert.deepEqual(
      [1, 2, 3, 6, 7, 100].map(notifyDelayMs),
      [5000, 10_000, 20_000, 160_000, 300_000, 300_000],
    );
    using test = testHost();
    const entry = () => test.host.ledger.read().workers['app/a']!;
    noteWorkers(test.host, [{ ...result(1, 'unreachable'), notificationId: 'c-1.1' }]);
    assert.deepEqual(
      [entry().tries, nextNotificationAtMs(entry()), entry().notificationId],
      [1, 5007, 'c-1.1'],
    );
    noteWorkers(test.host, [{ ...result(1, 'unreachable'), notificationId: 'c-1.2' }]);
    assert.deepEqual([entry().tries, nextNotificationAtMs(entry())], [2, 10_007]);
    noteWorkers(test.host, [{ ...result(1, 'confirmed'), notificationId: 'c-1.3' }]);
    assert.deepEqual([entry().tries, nextNotificationAtMs(entry())], [undefined, undefined]);
  });

  it('counts a notification once, also if it is recorded twice', () => {
    using test = testHost();
    const missed = { ...result(1, 'unreachable'), notificationId: 'c-1.1' };
    noteWorkers(test.host, [missed]);
    noteWorkers(test.host, [missed]);
    assert.equal(test.host.ledger.read().workers['app/a']?.tries, 1);
  });

  it('resets the count with each generation', () => {
    using test = testHost();
    noteWorkers(test.host, [{ ...result(1, 'unreachable'), notificationId: 'c-1.1' }]);
    noteWorkers(test.host, [{ ...result(2, 'unreachable'), notificationId: 'c-2.1' }]);
    assert.equal(test.host.ledger.read().workers['app/a']?.tries, 1);
  });

  it('has a due worker after its backoff, also after the clock was set back', () => {
    using test = testHost();
    noteWorkers(test.host, [result(1, 'unreachable')]);
    const turn = (nowMs: number): string[] => [...notifiableWorkers(test.host.ledger.read(), nowMs)];
    assert.deepEqual([turn(5006), turn(5007), turn(-400_000)], [[], ['app/a'], ['app/a']]);
  });

  it('lists the groups with a worker that may not use its wanted generation', () => {
    using test = testHost();
    noteWorkers(test.host, [
      result(1, 'confirmed'),
      { ...result(1, 'notified'), group: 'silent' },
      { ...result(1, 'refused'), group: 'stubborn' },
      { ...result(1, 'unreachable'), group: 'away' },
    ]);
    const unreadSets = { dark: { text: 'EACCES', sinceMs: 1 } };
    const ledger = ledgerWith(test.host.ledger.read(), { unreadSets });
    assert.deepEqual([...pendingGroups(ledger)].sort(), ['away', 'dark', 'stubborn']);
  });

  it('does not wait for a departed worker, and still lists its group', () => {
    using test = testHost();
    noteWorkers(test.host, [result(1, 'unreachable')]);
    const ledger = test.host.ledger.read();
    const workers = { 'app/a': { ...ledger.workers['app/a']!, goneAtMs: 8 } };
    assert.ok(!Object.values(workers).some(isPending));
    assert.deepEqual([...pendingGroups(ledgerWith(ledger, { workers }))], ['app']);
  });
});
