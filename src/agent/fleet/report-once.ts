// Sends one report at the end of a pull or rollback on a host without an agent. Bounded in time. A failure is a warning beside
// the unchanged result.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import type { StatusReport } from '../../core/status/status.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Host } from '../state/host.js';
import type { HostIdentity } from './make-report.js';
import { createReportSource } from './report-source.js';
import { withinTime } from './within-time.js';

const boundMs = 5000;

export interface EndedPull {
  readonly identity: HostIdentity;
  readonly ends: readonly CycleEnd[];
  readonly status: () => StatusReport;
  readonly signal: AbortSignal;
}

/** Sends one report. The caller holds the lock. @returns the failure; undefined after success or without a configured fleet */
export async function reportOnce(host: Host, pull: EndedPull): Promise<Problem | undefined> {
  const { fleet } = host.config;
  if (fleet === undefined) return undefined;
  const { identity, ends, status } = pull;
  try {
    const source = createReportSource({
      ...{ host: () => host, identity: () => identity },
      ...{ status, sender: 'pull' },
    });
    for (const end of ends) source.note(end);
    const { everyMs } = fleet;
    const send = (signal: AbortSignal) => source.send(fleet, { everyMs, timeoutMs: boundMs, signal });
    await withinTime(host.clock, boundMs, send, pull.signal);
    return undefined;
  } catch (error) {
    return problemOf(error);
  }
}
