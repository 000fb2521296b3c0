// What the ledger and the configuration say of the workers just now, put to the rule of core/status/worker-rules. Reads only;
// a cycle and the status say the same by it.
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

/** @returns what is wrong with the workers just now; none when all is well */
export function workerFindings({ ledger, config, clock }: WorkersView): WorkerFinding[] {
  return judgeWorkers(workerGroupFacts(ledger.read(), config, clock.nowMs()));
}

/** @returns WORKER_UNREACHABLE, WORKER_REFUSED, WORKER_UNCONFIRMED and WORKERS_MISSING that make an outcome `degraded` */
export function pendingProblems(host: WorkersView): Problem[] {
  return problemsIn(workerFindings(host));
}

/** @returns those that make an outcome `degraded` */
export function problemsIn(findings: readonly WorkerFinding[]): Problem[] {
  return findings.filter(({ effect }) => effect === 'degraded').map(problemIn);
}

/** @returns those that leave an outcome as it is */
export function warningsIn(findings: readonly WorkerFinding[]): Problem[] {
  return findings.filter(({ effect }) => effect === 'warning').map(problemIn);
}

function problemIn({ code, text, facts }: WorkerFinding): Problem {
  return problemOf(new WritError(code, text, { facts }));
}
