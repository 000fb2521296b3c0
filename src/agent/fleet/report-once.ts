// The one report of a host that lives without an agent, at the end of its pull or rollback: the outcomes of it, and how the host is.
// Bounded in time; what goes wrong is a warning beside the result, which stays as it is.
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

/** The caller holds the lock. @returns why the fleet server has no report; undefined where it has one, or none is configured */
export async function reportOnce(host: Host, pull: EndedPull): Promise<Problem | undefined> {
  const { fleet } = host.config;
  if (fleet === undefined) return undefined;
  const { identity, ends, status } = pull;
  try {
    const source = createReportSource({
      ...{ host: () => host, identity: () => identity },
      ...{ status, speaker: 'pull' },
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
