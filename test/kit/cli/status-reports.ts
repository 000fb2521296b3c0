// Status reports of a host for tests.
import type { HistoryEntry, StatusReport } from '../../../src/core/protocol/control-protocol.js';
import { bundleResult, cycleResult, problem, startedAtMs } from './cycle-results.js';

const dayMs = 86_400_000;
const atMs = startedAtMs + 40_000;

/** @returns the status of a host without problems; `more` replaces members */
export function statusReport(more: Partial<StatusReport> = {}): StatusReport {
  return {
    schema: 1,
    type: 'status.result',
    version: '0.1.0',
    host: 'edge-fra1-03',
    atMs,
    agent: 'run',
    last: { cycle: 'c-7f21', trigger: 'poll', outcome: 'activated', atMs: startedAtMs },
    confirmed: true,
    generation: 18,
    activatedAtMs: startedAtMs,
    bundles: [
      {
        bundle: 'dns-edge',
        channel: 'stable',
        serial: 42,
        revision: '4f1c2e9',
        activatedAtMs: startedAtMs,
        server: { serial: 42, revision: '4f1c2e9' },
      },
      {
        bundle: 'access',
        channel: 'stable',
        serial: 9,
        revision: 'v1.3',
        activatedAtMs: Date.UTC(2026, 10, 2, 8, 10),
        server: { serial: 10, revision: 'v1.4' },
      },
    ],
    workers: [workerStatus('kresd@1', 'confirmed'), workerStatus('kresd@2', 'confirmed')],
    freshness: { state: 'fresh', lastContactAtMs: startedAtMs },
    nextPollAtMs: atMs + 260_000,
    trust: [
      { role: 'timestamp', version: 1310, expiresAtMs: atMs + 6.9 * dayMs },
      { role: 'snapshot', version: 97, expiresAtMs: atMs + 29.5 * dayMs },
      { role: 'targets', version: 42, expiresAtMs: atMs + 340.5 * dayMs },
      { role: 'root', version: 1, expiresAtMs: atMs + 211.5 * dayMs },
    ],
    refusals: [],
    holds: [],
    problems: [],
    ...more,
  };
}

/** @param more members that replace those of a worker that wants generation 18 */
export function workerStatus(
  worker: string,
  state: StatusReport['workers'][number]['state'],
  more: Partial<StatusReport['workers'][number]> = {},
): StatusReport['workers'][number] {
  return {
    group: 'resolver',
    worker,
    wanted: 18,
    confirmed: state === 'confirmed' ? 18 : 17,
    state,
    text: '',
    atMs: startedAtMs + 1000,
    ...more,
  };
}

export const historyEntries: readonly HistoryEntry[] = [
  {
    schema: 1,
    type: 'history.entry',
    result: cycleResult('activated', { cycle: 'c-7f21', trigger: 'poll' }),
    steps: [{ step: 'refresh', verdict: 'ok', text: 'timestamp v1310, signed 2 min ago', durationMs: 100 }],
  },
  {
    schema: 1,
    type: 'history.entry',
    by: 'anna',
    result: cycleResult('rejected', {
      cycle: 'c-7f20',
      bundles: [
        bundleResult('rejected', {
          problem: problem('CHECK_FAILED', 'zones parse\nblock.rpz:214: invalid IPv4 address'),
        }),
      ],
      startedAtMs: startedAtMs - 1_805_000,
      durationMs: 600,
    }),
    steps: [
      { step: 'refresh', verdict: 'ok', text: 'timestamp v1309', durationMs: 100 },
      {
        step: 'check',
        verdict: 'fail',
        text: 'zones parse: FAIL (exit 1)\nblock.rpz:214: invalid IPv4 address',
        durationMs: 300,
      },
    ],
  },
  {
    schema: 1,
    type: 'history.entry',
    result: cycleResult('failed', {
      cycle: 'c-7e11',
      trigger: 'start',
      bundles: [],
      problems: [problem('METADATA_EXPIRED', 'timestamp v1308 expired 2 d ago')],
      startedAtMs: Date.UTC(2026, 10, 20, 9),
      durationMs: 200,
    }),
    steps: [],
  },
];
