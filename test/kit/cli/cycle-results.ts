// Results of cycles for tests that print them or send them.
import type {
  BundleResult,
  CycleResult,
  Problem,
  WorkerResult,
} from '../../../src/core/cycle/cycle-report.js';
import { exitCodeOfOutcome, type Outcome } from '../../../src/core/cycle/sync-machine.js';
import { type ErrorCode, errorCodes } from '../../../src/core/error-codes.js';

/** 2026-11-21 14:32:05 UTC */
export const startedAtMs = Date.UTC(2026, 10, 21, 14, 32, 5);

/** @returns a problem with the hint of the error catalogue and without facts */
export function problem(code: ErrorCode, message: string): Problem {
  return { code, message, hint: errorCodes[code].hint, facts: {} };
}

/** @param more members that replace those of a move from serial 41 to 42 */
export function bundleResult(outcome: Outcome, more: Partial<BundleResult> = {}): BundleResult {
  return {
    bundle: 'dns-edge',
    channel: 'stable',
    outcome,
    fromSerial: 41,
    toSerial: 42,
    revision: '4f1c2e9',
    ...more,
  };
}

/** @returns a worker of the group `resolver` with generation 18 */
export function worker(name: string, state: WorkerResult['state'], text: string): WorkerResult {
  return { group: 'resolver', worker: name, state, generation: 18, text, atMs: startedAtMs + 1000 };
}

/** @returns a pull from generation 17 to 18 with this outcome and its exit code */
export function cycleResult(outcome: Outcome, more: Partial<CycleResult> = {}): CycleResult {
  return {
    schema: 1,
    type: 'pull.result',
    cycle: 'c-7f20',
    trigger: 'pull',
    outcome,
    exitCode: exitCodeOfOutcome[outcome],
    confirmed: outcome === 'activated' || outcome === 'unchanged',
    changed: outcome === 'activated' || outcome === 'degraded',
    fromGeneration: 17,
    generation: outcome === 'activated' || outcome === 'degraded' ? 18 : 17,
    bundles: [bundleResult(outcome)],
    workers: [],
    problems: [],
    warnings: [],
    startedAtMs,
    durationMs: 1100,
    ...more,
  };
}
