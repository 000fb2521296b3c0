// `writ status --wait-report`: asks for the status of this host until a fleet server has acknowledged a report, or the time is over.
// Owns how often it asks and what it answers.
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { parseDuration } from '../../core/names.js';
import type { StatusReport } from '../../core/status/status.js';
import type { Answer, CommandContext } from '../console/command.js';
import { fleetLines } from '../show/show-fleet-door.js';
import { roughly } from '../show/show-text.js';

export interface ReportWaitOptions {
  /** As it was typed: other commands than this one need not load what parses it. */
  readonly wait: string;
  readonly context: Pick<CommandContext, 'clock' | 'signal'>;
  readonly readStatus: () => Promise<StatusReport>;
}

const pollIntervalMs = 500;

/**
 * @returns exit code 0 once a report was acknowledged, 1 when the time is over, 130 after a signal
 * @throws WritError at once for a configuration or command line, which waiting does not fix; else the last one at the end
 */
export async function waitForReport(options: ReportWaitOptions): Promise<Answer> {
  const { clock, signal } = options.context;
  const waitMs = parseDuration(options.wait);
  if (waitMs === undefined)
    throw new WritError('USAGE', `--wait-report ${JSON.stringify(options.wait)} is not a duration like 2m`);
  const startedMs = clock.monotonicMs();
  for (;;) {
    const seen = await readOnce(options);
    const waitedMs = clock.monotonicMs() - startedMs;
    if (!isWritError(seen) && seen.fleet?.acknowledgedAtMs !== undefined)
      return answer('reported', seen, { waitedMs });
    const leftMs = waitMs - waitedMs;
    if (leftMs <= 0) {
      if (isWritError(seen)) throw seen;
      return answer('time-over', seen, { waitedMs });
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
  const of = { type: 'wait-report.result', outcome, details };
  if (outcome === 'reported')
    return {
      ...of,
      exitCode: 0,
      lines: ['REPORTED  a fleet server has acknowledged a report', ...fleetLines(report)],
    };
  // The reason also where the status names it among the problems of the host.
  const lines = fleetLines({ ...report, problems: [] });
  const none = '  No agent of this host reports to a fleet: the key `fleet` is missing, or no agent runs.';
  return {
    ...of,
    exitCode: 1,
    lines: [
      `TIME OVER  no fleet server has acknowledged a report within ${roughly(waitedMs)}`,
      ...(fleet === undefined ? [none] : lines),
    ],
    next: 'writ doctor',
  };
}
