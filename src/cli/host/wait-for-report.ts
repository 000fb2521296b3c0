// `writ status --wait-report`: polls the status of this host until a fleet server has acknowledged a report, or the timeout expires.
// Decides the interval and the answer.
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { parseDuration } from '../../core/names.js';
import type { StatusReport } from '../../core/status/status.js';
import type { Answer, CommandContext } from '../console/command.js';
import { fleetLines } from '../show/show-reporting.js';
import { roughly } from '../show/show-text.js';

export interface ReportWaitOptions {
  /** The duration as text, because other commands do not load its parser. */
  readonly wait: string;
  readonly context: Pick<CommandContext, 'clock' | 'signal'>;
  readonly readStatus: () => Promise<StatusReport>;
}

const pollIntervalMs = 500;

/**
 * @returns exit code 0 after a report was acknowledged, 1 after the timeout, 130 after a signal
 * @throws WritError at once for an error of the configuration or command line, which a wait does not fix; after the timeout the last error
 */
export async function waitForReport(options: ReportWaitOptions): Promise<Answer> {
  const { clock, signal } = options.context;
  const waitMs = parseDuration(options.wait);
  if (waitMs === undefined)
    throw new WritError('USAGE', `--wait-report ${JSON.stringify(options.wait)} is not a duration like 2m`);
  const startedMs = clock.monotonicMs();
  for (;;) {
    const status = await readOnce(options);
    const waitedMs = clock.monotonicMs() - startedMs;
    if (!isWritError(status) && status.fleet?.acknowledgedAtMs !== undefined)
      return answer('reported', status, { waitedMs });
    const leftMs = waitMs - waitedMs;
    if (leftMs <= 0) {
      if (isWritError(status)) throw status;
      return answer('time-over', status, { waitedMs });
    }
    await clock.sleep(Math.min(pollIntervalMs, leftMs), signal);
    if (signal.aborted)
      return { type: 'wait-report.result', outcome: 'interrupted', exitCode: 130, details: {}, lines: [] };
  }
}

async function readOnce({ readStatus }: ReportWaitOptions): Promise<StatusReport | WritError> {
  try {
    return await readStatus();
  } catch (error) {
    if (!isWritError(error) || error.kind === 'config' || error.kind === 'usage') throw error;
    return error;
  }
}

function answer(
  outcome: 'reported' | 'time-over',
  report: StatusReport,
  { waitedMs }: { readonly waitedMs: number },
): Answer {
  const { fleet } = report;
  const details = { waitedMs, ...given({ fleet }) };
  const base = { type: 'wait-report.result', outcome, details };
  if (outcome === 'reported')
    return {
      ...base,
      exitCode: 0,
      lines: ['REPORTED  a fleet server has acknowledged a report', ...fleetLines(report)],
    };
  // The reason is shown here even if the report also lists it among its problems.
  const lines = fleetLines({ ...report, problems: [] });
  const noFleet = '  No agent of this host reports to a fleet: the key `fleet` is missing, or no agent runs.';
  return {
    ...base,
    exitCode: 1,
    lines: [
      `TIME OVER  no fleet server has acknowledged a report within ${roughly(waitedMs)}`,
      ...(fleet === undefined ? [noFleet] : lines),
    ],
    next: 'writ doctor',
  };
}
