import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { afterExit, type PolicyLeft } from '../../../../src/agent/cycle/combined-result-rules.js';
import type { CycleResult, Problem } from '../../../../src/core/cycle/cycle-report.js';
import { cycleResult } from '../../../kit/cli/cycle-results.js';

const alarm: Problem = {
  code: 'UNTRUSTED_ACTIVE',
  message: 'dns 2 is active and no trusted role lists it',
  hint: 'Publish it again.',
  facts: { bundle: 'dns', serial: 2, generation: 2 },
};
const unreached: Problem = { code: 'WORKER_UNREACHABLE', message: 'w', hint: '', facts: {} };
const worker = { group: 'g', worker: 'w', state: 'confirmed', generation: 1, text: 'ok', atMs: 1 } as const;
const kept = { bundle: 'dns', channel: 'stable', outcome: 'unchanged', fromSerial: 2, toSerial: 2 } as const;

function alarmed(more: Partial<CycleResult> = {}): CycleResult {
  const ended = { changed: false, fromGeneration: 2, generation: 2 } as const;
  return cycleResult('degraded', { ...ended, bundles: [kept], problems: [alarm], durationMs: 5, ...more });
}

function rolledBack(more: Partial<CycleResult> = {}): CycleResult {
  return cycleResult('activated', {
    type: 'rollback.result',
    changed: true,
    fromGeneration: 2,
    generation: 1,
    bundles: [{ ...kept, outcome: 'activated', toSerial: 1 }],
    workers: [worker],
    durationMs: 7,
    ...more,
  });
}

const exit = (
  more: Partial<CycleResult> = {},
  alarmOf: PolicyLeft['alarm'] = 'UNTRUSTED_ACTIVE',
): PolicyLeft => ({
  ...{ alarm: alarmOf, result: rolledBack(more) },
});

describe('a pull after an exit rollback from an untrusted release', () => {
  it('returns the result of the cycle when there was no exit rollback', () => {
    const alone = alarmed();
    assert.equal(afterExit(alone, undefined), alone);
  });

  it('names the generation that is active now, and its outcome is activated', () => {
    const merged = afterExit(alarmed(), exit());
    assert.deepEqual(
      [
        merged.type,
        merged.outcome,
        merged.exitCode,
        merged.changed,
        merged.fromGeneration,
        merged.generation,
      ],
      ['pull.result', 'activated', 0, true, 2, 1],
    );
    assert.deepEqual([merged.problems, merged.workers, merged.durationMs], [[], [worker], 12]);
    const [bundle] = merged.bundles;
    assert.deepEqual([bundle?.outcome, bundle?.fromSerial, bundle?.toSerial], ['activated', 2, 1]);
    const [warning] = merged.warnings;
    assert.equal(warning?.code, 'UNTRUSTED_ACTIVE');
    assert.deepEqual(warning?.facts, { generation: 1, left: 2 });
  });

  it('has the outcome of the exit rollback when that is worse', () => {
    const back = exit({ outcome: 'degraded', confirmed: false, problems: [unreached] });
    const merged = afterExit(alarmed(), back);
    assert.deepEqual([merged.outcome, merged.exitCode, merged.confirmed], ['degraded', 4, false]);
    assert.deepEqual(merged.problems, [unreached]);
  });

  it('has the outcome of the cycle without the alarm when that is worse', () => {
    const also = afterExit(alarmed({ problems: [unreached, alarm] }), exit());
    assert.deepEqual([also.outcome, also.exitCode, also.problems], ['degraded', 4, [unreached]]);
    const expired: Problem = { ...unreached, code: 'METADATA_EXPIRED' };
    const failed = alarmed({ outcome: 'failed', exitCode: 2, problems: [expired, alarm] });
    const merged = afterExit(failed, exit());
    assert.deepEqual([merged.outcome, merged.exitCode, merged.generation], ['failed', 2, 1]);
    const refused = { ...kept, outcome: 'rejected', toSerial: 3, problem: expired } as const;
    const rejected = alarmed({ outcome: 'rejected', exitCode: 3, bundles: [refused] });
    assert.deepEqual(afterExit(rejected, exit()).bundles, [{ ...refused, activeSerial: 1 }]);
  });

  it('names no other active serial when the exit did not move the bundle', () => {
    const refused = { ...kept, outcome: 'rejected', toSerial: 3, problem: unreached } as const;
    const rejected = alarmed({ outcome: 'rejected', exitCode: 3, bundles: [refused] });
    assert.deepEqual(afterExit(rejected, exit({ bundles: [kept] })).bundles, [refused]);
    const failed = { ...kept, outcome: 'rolled-back', toSerial: 1, problem: unreached } as const;
    assert.deepEqual(afterExit(rejected, exit({ bundles: [failed] })).bundles, [refused]);
  });

  it('reports each problem once, and only the newer warnings about workers that the exit notified', () => {
    const unproven = (message: string, group: string): Problem => ({
      ...{ code: 'WORKER_UNCONFIRMED', message, hint: '', facts: { group } },
    });
    const ended = alarmed({
      problems: [unreached, alarm],
      warnings: [unproven('asked again at 1', 'g'), unproven('asked again at 1', 'other')],
    });
    const warnings = [unproven('asked again at 2', 'g'), unproven('asked again at 1', 'other')];
    const merged = afterExit(ended, exit({ problems: [unreached], warnings }));
    assert.deepEqual(merged.problems, [unreached]);
    assert.deepEqual(
      merged.warnings.filter(({ code }) => code === 'WORKER_UNCONFIRMED').map(({ message }) => message),
      ['asked again at 1', 'asked again at 2'],
    );
  });

  it('is unchanged when it ends at its first generation', () => {
    const there = alarmed({ changed: true, fromGeneration: 1 });
    assert.deepEqual([afterExit(there, exit()).changed, afterExit(there, exit()).generation], [false, 1]);
  });

  it('keeps the alarm when workers refused the exit rollback, and reports their refusal', () => {
    const stuck = exit({ outcome: 'rolled-back', changed: false, generation: 2, problems: [unreached] });
    const merged = afterExit(alarmed(), stuck);
    assert.deepEqual(
      [merged.outcome, merged.exitCode, merged.generation, merged.changed],
      ['degraded', 4, 2, false],
    );
    assert.deepEqual([merged.problems, merged.warnings], [[alarm], [unreached]]);
  });

  it('names the withdrawn release that it left, and keeps the outcome of the offered replacement', () => {
    const refused: Problem = { ...unreached, code: 'REMEMBERED_REFUSAL' };
    const offered = { ...kept, outcome: 'rejected', toSerial: 3, problem: refused } as const;
    const ended = { bundles: [offered], problems: [refused], outcome: 'rejected', exitCode: 3 } as const;
    const merged = afterExit(alarmed(ended), exit({}, 'ACTIVE_WITHDRAWN'));
    assert.deepEqual(
      [merged.outcome, merged.exitCode, merged.generation, merged.changed],
      ['rejected', 3, 1, true],
    );
    assert.deepEqual([merged.problems, merged.bundles], [[refused], [{ ...offered, activeSerial: 1 }]]);
    const [warning] = merged.warnings;
    assert.deepEqual([warning?.code, warning?.facts], ['ACTIVE_WITHDRAWN', { generation: 1, left: 2 }]);
    assert.match(warning?.message ?? '', /withdrawn dns 2: generation 1 \(dns 1\) replaced generation 2/);
  });
});
