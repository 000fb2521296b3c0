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

describe('a download that is under way', () => {
  it('is known from its first word to the next of something else, or the end of its job', async () => {
    const { observer, now } = watchDownloads();
    const runner = createCycleRunner(
      () => assert.fail('no cycle'),
      (work) => observer.onWork?.(work, {} as AgentConfig),
    );
    const after = (hear: (event: CycleEventLine) => void, event: CycleEventLine) => {
      hear(event);
      return now();
    };
    const known: unknown[] = [now()];
    const ended = runner.exclusive(async (hear) => {
      known.push(now(), after(hear, progress), after(hear, finished), after(hear, progress));
      throw new Error('cut');
    });
    await assert.rejects(ended, /cut/);
    const download = { doneBytes: 12, totalBytes: 40 };
    assert.deepEqual(known, [undefined, undefined, download, undefined, download]);
    assert.equal(now(), undefined);
  });
});
