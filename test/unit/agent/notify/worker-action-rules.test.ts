// The action that a reconcile decides for each worker.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ActionOptions, nextWorkerActions } from '../../../../src/agent/notify/worker-action-rules.js';
import type { WorkerGroup } from '../../../../src/agent/state/host.js';
import type { WorkerLedger } from '../../../../src/agent/state/ledger.js';

const nowMs = 1_000_000;

function decide(
  workers: Readonly<Record<string, Partial<WorkerLedger>>>,
  { hasProbe, previous, ...options }: Partial<ActionOptions> & { hasProbe?: true; previous?: number } = {},
): string[] {
  const entry: WorkerLedger = { wanted: 2, state: 'pending', text: '', atMs: 1 };
  const group: WorkerGroup = {
    config: {
      name: 'app',
      uses: ['access'],
      confirm: 'warn',
      when: [],
      ...(hasProbe !== true ? {} : { probe: { run: ['true'], timeoutMs: 1 } }),
    } as WorkerGroup['config'],
  };
  const known = Object.entries(workers).map(([name, one]) => [`app/${name}`, { ...entry, ...one }]);
  const ledger = {
    workers: Object.fromEntries(known) as Record<string, WorkerLedger>,
    ...(previous === undefined ? {} : { previous }),
  };
  const actions = nextWorkerActions(ledger, [group], {
    ...{ nowMs, ignoreBackoff: false, isAfterProbes: false, verbOf: () => 'reset' },
    ...options,
  });
  return [...actions].map(([key, { kind, reason }]) => `${key}: ${kind}, for ${reason}`);
}

const later: Partial<WorkerLedger> = { state: 'unreachable', tries: 1, notifiedAtMs: nowMs - 1 };
const appeared: Partial<WorkerLedger> = { appeared: true };

describe('the next action for a worker', () => {
  it('notifies a pending worker after its backoff, or at once on request', () => {
    assert.deepEqual(decide({ a: {}, b: later }), [
      'app/a: notify, for it has not accepted the generation',
      'app/b: nothing, for its next try is later',
    ]);
    assert.deepEqual(decide({ b: later }, { ignoreBackoff: true }), [
      'app/b: notify, for it has not accepted the generation',
    ]);
  });

  it('is a restart if only a restart loads the changed files', () => {
    assert.deepEqual(decide({ a: {} }, { verbOf: () => 'restart' }), [
      'app/a: restart, for it has not accepted the generation',
    ]);
  });

  it('is nothing for a worker that answered, refused or departed', () => {
    assert.deepEqual(
      decide({
        a: { state: 'confirmed' },
        b: { state: 'notified' },
        c: { state: 'refused' },
        d: { goneAtMs: 5 },
      }),
      [
        'app/a: nothing, for it has answered',
        'app/b: nothing, for it has answered',
        'app/c: nothing, for it refuses',
        'app/d: nothing, for it is gone',
      ],
    );
  });

  it('notifies a worker with a refusal that causes no restore only on request', () => {
    const refuses: Partial<WorkerLedger> = { state: 'refused', confirmed: 2 };
    assert.deepEqual(decide({ a: refuses }, { previous: 1 }), ['app/a: nothing, for it refuses']);
    assert.deepEqual(decide({ a: refuses }, { previous: 1, ignoreBackoff: true }), [
      'app/a: notify, for it refuses, and may have been repaired',
    ]);
    assert.deepEqual(
      decide({ a: { state: 'refused', confirmed: 1 } }, { previous: 1, ignoreBackoff: true }),
      ['app/a: nothing, for it refuses'],
    );
  });

  it('runs the probe first, once, in a group in which no worker has confirmed the generation', () => {
    const probed = 'probe, for it may already use the generation';
    const two = { a: appeared, b: { state: 'unreachable' } } as const;
    assert.deepEqual(decide(two, { hasProbe: true }), [`app/a: ${probed}`, `app/b: ${probed}`]);
    assert.deepEqual(decide({ a: appeared }, { hasProbe: true, isAfterProbes: true }), [
      'app/a: notify, for it has not accepted the generation',
    ]);
  });

  it('runs no probe if another worker could answer it, after an incomplete move, or before the backoff of all is over', () => {
    const kinds = (workers: Parameters<typeof decide>[0]): (string | undefined)[] =>
      decide(workers, { hasProbe: true }).map((one) => /: (\w+)/.exec(one)?.[1]);
    assert.deepEqual(kinds({ a: appeared, b: { state: 'confirmed' } }), ['notify', 'nothing']);
    assert.deepEqual(kinds({ a: appeared, b: {} }), ['notify', 'notify']);
    assert.deepEqual(kinds({ a: appeared, b: later }), ['notify', 'nothing']);
    assert.deepEqual(kinds({ a: appeared, b: { goneAtMs: 5 } }), ['probe', 'nothing']);
  });
});
