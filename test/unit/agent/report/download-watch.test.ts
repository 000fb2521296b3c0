import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCycleRunner } from '../../../../src/agent/cycle/cycle-runner.js';
import { watchDownloads } from '../../../../src/agent/report/download-watch.js';
import type { AgentConfig } from '../../../../src/core/config/config.js';
import type { CycleEventLine } from '../../../../src/core/cycle/cycle-report.js';

const cycle = 'c-ab';
const progress = { type: 'step.progress', cycle, step: 'fetch', doneBytes: 12, totalBytes: 40 } as const;
const finished = {
  type: 'step.finished',
  cycle,
  step: 'fetch',
  verdict: 'ok',
  text: '',
  durationMs: 1,
} as const;

describe('the current download', () => {
  it('is reported from its first progress until the next step or the end of its job', async () => {
    const { observer, now } = watchDownloads();
    const runner = createCycleRunner(
      () => assert.fail('no cycle'),
      (work) => observer.onWork?.(work, {} as AgentConfig),
    );
    const after = (receive: (event: CycleEventLine) => void, event: CycleEventLine) => {
      receive(event);
      return now();
    };
    const known: unknown[] = [now()];
    const ended = runner.exclusive(async (receive) => {
      known.push(now(), after(receive, progress), after(receive, finished), after(receive, progress));
      throw new Error('cut');
    });
    await assert.rejects(ended, /cut/);
    const download = { doneBytes: 12, totalBytes: 40 };
    assert.deepEqual(known, [undefined, undefined, download, undefined, download]);
    assert.equal(now(), undefined);
  });
});
