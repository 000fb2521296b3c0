// `writ pause` and `writ resume` as a user runs them, against a scripted agent.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SocketMessage } from '../../../src/core/protocol/socket-protocol.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { withAgent } from '../../kit/cli/with-agent.js';

describe('writ resume', () => {
  it('prints what it ended, or UNCHANGED when nothing was paused or held', async () => {
    const ended = [{ kind: 'hold', what: 'dns-edge 42' }];
    const some = await withAgent(['resume'], () => [{ schema: 1, type: 'resume.result', ended }]);
    assert.match(some.run.stdout, /^RESUMED\n {2}hold has ended: dns-edge 42\nNext: writ pull/);
    const none = await withAgent(['resume', '--json'], () => [
      { schema: 1, type: 'resume.result', ended: [] },
    ]);
    assert.equal(jsonOf(none.run)['outcome'], 'unchanged');
    assert.equal(none.run.exitCode, 0);
  });
});

describe('writ pause', () => {
  const pauseResult = (request: SocketMessage): readonly object[] => {
    const { by, reason, untilMs } = request;
    const pause = { by, reason, atMs: 1, ...(untilMs === undefined ? {} : { untilMs }) };
    return [{ schema: 1, type: 'pause.result', pause }];
  };

  it('sends the user, the reason and the end, and prints how to undo the pause', async () => {
    const until = ['pause', '--until', '2026-12-27T09:00+01:00', '--reason', 'holidays'];
    const { run, requests } = await withAgent(until, pauseResult);
    const untilMs = Date.UTC(2026, 11, 27, 8);
    assert.deepEqual(requests[0], { type: 'pause', by: 'anna', reason: 'holidays', untilMs });
    assert.match(run.stdout, /^PAUSED {4}until 2026-12-27 08:00 UTC\n/);
    assert.match(run.stdout, /\nUndo: writ resume/);
    const open = await withAgent(['pause', '--reason', 'r', '--json'], pauseResult);
    assert.equal(open.requests[0]?.['untilMs'], undefined);
    assert.deepEqual([jsonOf(open.run)['outcome'], open.run.exitCode], ['paused', 0]);
  });

  it('adds the duration of --for to the current time', async () => {
    const before = Date.now();
    const { requests } = await withAgent(['pause', '--for', '2h', '--reason', 'r'], pauseResult);
    const untilMs = Number(requests[0]?.['untilMs']) - 7_200_000;
    assert.ok(untilMs >= before && untilMs <= Date.now());
  });

  for (const args of [
    ['--for', '2h'],
    ['--reason', ''],
    ['--reason', 'x'.repeat(201)],
    ['--reason', 'r', '--for', '2h', '--until', '2026-12-27T08:00Z'],
    ['--reason', 'r', '--until', 'tomorrow'],
    ['--reason', 'r', '--until', '2026-12-27T08:00'],
    ['--reason', 'r', '--until', '2026-13-27T08:00Z'],
  ]) {
    it(`refuses ${args.join(' ').slice(0, 60)}`, async () => {
      const { run, requests } = await withAgent(['pause', ...args], pauseResult);
      assert.deepEqual([run.exitCode, requests], [2, []]);
    });
  }
});
