import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Reporter } from '../../../../src/cli/console/command.js';
import { stepPrinter } from '../../../../src/cli/show/show-steps.js';
import type { CycleEventLine } from '../../../../src/core/cycle/cycle-report.js';

function recorder(): { readonly calls: unknown[][]; readonly reporter: Reporter } {
  const calls: unknown[][] = [];
  const record =
    (name: string) =>
    (...args: unknown[]): void => {
      calls.push([name, ...args]);
    };
  const reporter = {
    begin: record('begin'),
    progress: record('progress'),
    finish: record('finish'),
    drop: record('drop'),
    note: record('note'),
    warn: record('warn'),
  };
  return { calls, reporter };
}

const cycle = 'c-1';
const events: readonly CycleEventLine[] = [
  { type: 'cycle.started', cycle, trigger: 'pull', atMs: 0 },
  { type: 'step.started', cycle, step: 'fetch' },
  { type: 'step.progress', cycle, step: 'fetch', doneBytes: 600_000, totalBytes: 1_200_000 },
  { type: 'step.finished', cycle, step: 'fetch', verdict: 'ok', text: '1.2 MB', durationMs: 300 },
  { type: 'step.started', cycle, step: 'canary' },
  { type: 'step.finished', cycle, step: 'canary', verdict: 'skip', text: '', durationMs: 0 },
  { type: 'step.started', cycle, step: 'check' },
  {
    type: 'step.finished',
    cycle,
    step: 'check',
    verdict: 'fail',
    text: 'zones parse: FAIL\nline 2',
    durationMs: 3,
  },
];

describe('the steps of a running cycle', () => {
  it('print no line for a step without a text', () => {
    const { calls, reporter } = recorder();
    for (const event of events) stepPrinter(reporter, {})(event);
    assert.deepEqual(calls, [
      ['begin', 'fetch'],
      ['progress', 'fetch', { done: 600_000, total: 1_200_000, unit: 'bytes' }],
      ['finish', 'fetch', '1.2 MB', 'ok'],
      ['begin', 'canary'],
      ['drop', 'canary'],
      ['begin', 'check'],
      ['finish', 'check', 'zones parse: FAIL', 'FAIL'],
      ['note', 'line 2'],
    ]);
  });

  it('name the cycle that a request waits for, how much it has, and why it is not ended', () => {
    const { calls, reporter } = recorder();
    const wait = { type: 'cycle.awaited', cycle, trigger: 'poll', step: 'fetch' } as const;
    const bytes = { doneBytes: 600_000, totalBytes: 1_200_000 };
    const print = stepPrinter(reporter, {});
    print(wait);
    print({ ...wait, ...bytes });
    print({ ...wait, ...bytes, resumable: false });
    print({ type: 'reloaded' });
    const begun = 'cycle c-1 began before this request: fetch';
    assert.deepEqual(calls, [
      ['note', begun],
      ['note', `${begun}, 600.0 kB of 1.2 MB downloaded`],
      [
        'note',
        `${begun}, 600.0 kB of 1.2 MB downloaded; its server sends files only as a whole, so the download is not ended`,
      ],
      ['note', 'the configuration was read again and is in use; its cycle follows'],
    ]);
  });

  it('name the workers that a cycle waits for, and the end of the wait', () => {
    const { calls, reporter } = recorder();
    const wait = { group: 'ns', untilAtMs: Date.UTC(2026, 10, 1, 8, 0, 30) };
    const print = stepPrinter(reporter, {});
    print({ type: 'workers.awaited', cycle, ...wait, missing: ['1 of at least 2'] });
    print({ type: 'workers.awaited', cycle, ...wait, missing: ['a', 'b', 'c', 'd', 'e', 'f'] });
    assert.deepEqual(calls, [
      ['note', 'waiting for ns until 2026-11-01 08:00:30 UTC: 1 of at least 2 not there'],
      ['note', 'waiting for ns until 2026-11-01 08:00:30 UTC: a, b, c, d, e, and 1 more not there'],
    ]);
  });

  it('show every step with --verbose', () => {
    const { calls, reporter } = recorder();
    for (const event of events) stepPrinter(reporter, { verbose: true })(event);
    assert.ok(
      calls.some(([name, step, , state]) => name === 'finish' && step === 'canary' && state === 'skip'),
    );
  });
});
