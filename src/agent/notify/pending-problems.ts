// Applies core/status/worker-rules to the ledger and the configuration. Reads only. A cycle and the status report share it, so
// both report the same problems.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { WritError } from '../../core/errors.js';
import { judgeWorkers, type WorkerFinding } from '../../core/status/worker-rules.js';
import type { Clock } from '../../platform/time/clock.js';
import { workerGroupFacts } from '../state/confirmed-workers.js';
import type { Host } from '../state/host.js';

interface WorkersView extends Pick<Host, 'ledger' | 'config'> {
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** @returns the current findings about the workers; empty if there are none */
export function workerFindings({ ledger, config, clock }: WorkersView): WorkerFinding[] {
  return judgeWorkers(workerGroupFacts(ledger.read(), config, clock.nowMs()));
}

/** @returns WORKER_UNREACHABLE, WORKER_REFUSED, WORKER_UNCONFIRMED and WORKERS_MISSING that make an outcome `degraded` */
export function pendingProblems(host: WorkersView): Problem[] {
  return problemsIn(workerFindings(host));
}

/** @returns the findings that make an outcome `degraded` */
export function problemsIn(findings: readonly WorkerFinding[]): Problem[] {
  return findings.filter(({ effect }) => effect === 'degraded').map(problemIn);
}

/** @returns the findings that do not change an outcome */
export function warningsIn(findings: readonly WorkerFinding[]): Problem[] {
  return findings.filter(({ effect }) => effect === 'warning').map(problemIn);
}

function problemIn({ code, text, facts }: WorkerFinding): Problem {
  return problemOf(new WritError(code, text, { facts }));
}
