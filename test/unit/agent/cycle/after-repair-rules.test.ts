import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { afterRepair } from '../../../../src/agent/cycle/combined-result-rules.js';
import type { CycleResult, Problem } from '../../../../src/core/cycle/cycle-report.js';

const damaged: Problem = { code: 'STATE_DAMAGED', message: 'changed on disk', hint: '', facts: {} };
const worker = { group: 'g', worker: 'w', state: 'confirmed', generation: 3, text: 'ok', atMs: 1 } as const;

function result(more: Partial<CycleResult>): CycleResult {
  return {
    schema: 1,
    type: 'pull.result',
    cycle: 'c-00000001',
    trigger: 'pull',
    outcome: 'unchanged',
    exitCode: 0,
    confirmed: true,
    changed: false,
    fromGeneration: 3,
    generation: 3,
    bundles: [{ bundle: 'dns', channel: 'stable', outcome: 'unchanged', fromSerial: 2, toSerial: 2 }],
    workers: [],
    problems: [],
    warnings: [],
    startedAtMs: 1,
    durationMs: 1,
    ...more,
  };
}

const repair = result({
  type: 'repair.result',
  trigger: 'repair',
  outcome: 'activated',
  changed: true,
  fromGeneration: 2,
  bundles: [{ bundle: 'dns', channel: 'stable', outcome: 'activated', fromSerial: 2, toSerial: 2 }],
  workers: [worker],
  warnings: [damaged],
});

describe('a pull that repaired the policy first', () => {
  it('returns the result of the cycle when no repair was necessary', () => {
    const alone = result({});
    assert.equal(afterRepair(alone, undefined), alone);
  });

  it('is activated, from the generation before the repair, when the cycle changed nothing', () => {
    const merged = afterRepair(result({}), repair);
    assert.deepEqual(
      [
        merged.type,
        merged.outcome,
        merged.exitCode,
        merged.changed,
        merged.fromGeneration,
        merged.generation,
      ],
      ['pull.result', 'activated', 0, true, 2, 3],
    );
    assert.deepEqual(merged.bundles, repair.bundles);
    assert.deepEqual(merged.workers, [worker]);
    assert.deepEqual(merged.warnings, [damaged]);
  });

  it('is degraded when the repair is, for example because of an unreachable worker', () => {
    const merged = afterRepair(result({}), {
      ...repair,
      outcome: 'degraded',
      confirmed: false,
      problems: [damaged],
    });
    assert.deepEqual([merged.outcome, merged.exitCode, merged.confirmed], ['degraded', 4, false]);
    assert.deepEqual(merged.problems, [damaged]);
  });

  it('has the outcome of the cycle when the cycle failed or moved the link', () => {
    const failed = result({ outcome: 'failed', exitCode: 1, confirmed: false, problems: [damaged] });
    const merged = afterRepair(failed, repair);
    assert.deepEqual(
      [merged.outcome, merged.exitCode, merged.changed, merged.fromGeneration],
      ['failed', 1, true, 2],
    );
    const moved = result({ outcome: 'activated', changed: true, generation: 4, workers: [worker] });
    const both = afterRepair(moved, { ...repair, outcome: 'degraded' });
    assert.deepEqual([both.outcome, both.fromGeneration, both.generation], ['activated', 2, 4]);
  });

  it('contains only the warnings of a repair that did not move the link', () => {
    const tried = { ...repair, outcome: 'failed', changed: false } as const;
    const merged = afterRepair(result({}), tried);
    assert.deepEqual([merged.outcome, merged.changed, merged.fromGeneration], ['unchanged', false, 3]);
    assert.deepEqual(merged.warnings, [damaged]);
  });
});
