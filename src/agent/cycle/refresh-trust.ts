// The `refresh` step: brings the trusted metadata up to date, and remembers when the server asked for quiet; the same again during
// a long download. Owns what a cycle says of mirrors that failed while another one did not: a mirror that lies is an alarm even
// though it had no effect; the outcome stays what it is.

import { problemOf } from '../../core/cycle/problem.js';
import { longestQuietMs } from '../../core/cycle/schedule.js';
import { isWritError, WritError } from '../../core/errors.js';
import { type MirrorFailure, mirrorWarning } from '../../trust/mirrors/mirror-failures.js';
import type { RefreshResult } from '../../trust/trust-report.js';
import type { Job } from '../job/job.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import { retryWithReserveAsync } from '../state/restore-memory.js';
import type { CycleRequest } from './cycle-request.js';

const changeRetry = ledgerSection('retryAfterUntilMs');

/** @throws WritError every code of trust and transport */
export async function refreshTrust(job: Job, { force, signal }: CycleRequest): Promise<void> {
  await job.story.step('refresh', async () => {
    const refreshed = await askRepository(job, { conditional: force === 'yes' ? 'no' : 'yes', signal });
    const { roles, warnings, changed, mirror, failures } = refreshed;
    const from = mirrorText(mirror, job.host.config.repository.length);
    const text = `timestamp v${roles.timestamp.version}${changed ? '' : ', nothing new'}${from}`;
    return { value: undefined, text, verdict: warnings.length + failures.length > 0 ? 'warn' : 'ok' };
  });
}

interface AskOptions {
  readonly conditional: 'yes' | 'no';
  readonly signal: AbortSignal;
}

/**
 * One refresh, with what the result of the cycle says of it. On a full disk it may use the reserve: only a refresh shows whether
 * there is a withdrawal.
 * @throws WritError every code of trust and transport
 */
export function askRepository(job: Job, options: AskOptions): Promise<RefreshResult> {
  return retryWithReserveAsync(job.host, () => askOnce(job, options));
}

async function askOnce(job: Job, options: AskOptions): Promise<RefreshResult> {
  const { host, record } = job;
  try {
    const refreshed = await host.client.refresh(options);
    noteMirrorFailures(job, refreshed.failures);
    record.warnings.push(
      ...refreshed.warnings.map(({ code, message, facts }) =>
        problemOf(new WritError(code, message, { facts })),
      ),
    );
    record.refresh = { atMs: host.clock.nowMs() };
    record.refreshedAtBootMs = host.clock.bootMs();
    endRetryAfter(host);
    return refreshed;
  } catch (error) {
    noteRetryAfter(host, error);
    // Ended by us, before or after the server was reached: nothing new is known about it.
    if (isWritError(error) && error.code !== 'INTERRUPTED')
      record.refresh = { atMs: host.clock.nowMs(), error };
    throw error;
  }
}

/** During a download: resolves when the next poll would be expected, not before the end of a Retry-After, or at the signal. */
export function waitForNextRefresh(
  { config, ledger, clock }: Pick<Host, 'config' | 'ledger' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const { poll } = config;
  const everyMs = poll.kind === 'every' ? poll.everyMs : undefined;
  const longestMs = longestQuietMs(everyMs);
  const quietMs = (ledger.read().retryAfterUntilMs ?? 0) - clock.nowMs();
  return clock.sleep(Math.max(everyMs ?? longestMs, Math.min(quietMs, longestMs)), signal);
}

/** Kept on disk: a restart must not hurry a server that asked for time. */
function noteRetryAfter(host: Host, error: unknown): void {
  if (!isWritError(error) || error.code !== 'SERVER_BUSY') return;
  const { retryAfterMs } = error.facts;
  if (typeof retryAfterMs !== 'number') return;
  const { poll } = host.config;
  const longestMs = longestQuietMs(poll.kind === 'every' ? poll.everyMs : undefined);
  const retryAfterUntilMs = host.clock.nowMs() + Math.min(retryAfterMs, longestMs);
  host.ledger.write(changeRetry(host.ledger.read(), { retryAfterUntilMs }));
}

/** Who answers has time again. */
function endRetryAfter(host: Host): void {
  const ledger = host.ledger.read();
  if (ledger.retryAfterUntilMs === undefined) return;
  host.ledger.write(changeRetry(ledger, { retryAfterUntilMs: undefined }));
}

/** For a host with another repository: the one that asked for quiet is not asked any more. Never throws. */
export function forgetRetryAfter(host: Host): void {
  try {
    endRetryAfter(host);
  } catch (error) {
    host.log.error({ err: error }, 'the Retry-After of the former repository could not be forgotten');
  }
}

/** Makes a warning of each mirror that failed, for the result of the cycle and the log. */
export function noteMirrorFailures({ host, story, record }: Job, failures: readonly MirrorFailure[]): void {
  for (const failure of failures) {
    const warning = problemOf(mirrorWarning(failure));
    record.warnings.push(warning);
    host.log.warn({ cycle: story.cycle, mirror: failure.mirror, problem: warning }, 'a mirror failed');
  }
}

/** @returns words for the end of a step, where there is more than one mirror to choose from */
function mirrorText(mirror: string, configured: number): string {
  return configured > 1 ? ` from ${mirror}` : '';
}
