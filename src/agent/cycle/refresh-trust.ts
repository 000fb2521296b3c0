// The `refresh` step: updates the trusted metadata, and records a Retry-After of the server. Also refreshes during a long
// download. Owns the warnings about failed mirrors: a mirror with invalid metadata causes a warning even if another mirror
// succeeded and the outcome is not affected.

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

/**
 * Runs the step `refresh`: updates the trusted metadata from the first mirror that has it. With `force`, the request
 * is unconditional.
 * @throws WritError every code of trust and transport
 */
export async function refreshTrust(job: Job, { force, signal }: CycleRequest): Promise<void> {
  await job.progress.step('refresh', async () => {
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
 * Refreshes once and records the outcome in the result of the cycle. On a full disk it may use the reserve file, because only a
 * refresh shows whether there is a withdrawal.
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
    // An interrupted refresh is no evidence about the server.
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

/** Recorded on disk, because a restart must not ignore the Retry-After of a server. */
function noteRetryAfter(host: Host, error: unknown): void {
  if (!isWritError(error) || error.code !== 'SERVER_BUSY') return;
  const { retryAfterMs } = error.facts;
  if (typeof retryAfterMs !== 'number') return;
  const { poll } = host.config;
  const longestMs = longestQuietMs(poll.kind === 'every' ? poll.everyMs : undefined);
  const retryAfterUntilMs = host.clock.nowMs() + Math.min(retryAfterMs, longestMs);
  host.ledger.write(changeRetry(host.ledger.read(), { retryAfterUntilMs }));
}

/** Clears the Retry-After, because a server that replies accepts requests again. */
function endRetryAfter(host: Host): void {
  const ledger = host.ledger.read();
  if (ledger.retryAfterUntilMs === undefined) return;
  host.ledger.write(changeRetry(ledger, { retryAfterUntilMs: undefined }));
}

/** Clears the Retry-After after a change of the repository, because it applied to the former server. Never throws. */
export function forgetRetryAfter(host: Host): void {
  try {
    endRetryAfter(host);
  } catch (error) {
    host.log.error({ err: error }, 'the Retry-After of the former repository could not be forgotten');
  }
}

/** Adds a warning for each failed mirror to the result of the cycle, and logs it. */
export function noteMirrorFailures(
  { host, progress, record }: Job,
  failures: readonly MirrorFailure[],
): void {
  for (const failure of failures) {
    const warning = problemOf(mirrorWarning(failure));
    record.warnings.push(warning);
    host.log.warn({ cycle: progress.cycle, mirror: failure.mirror, problem: warning }, 'a mirror failed');
  }
}

/** @returns a suffix for the text of the step; empty with only one configured mirror */
function mirrorText(mirror: string, configured: number): string {
  return configured > 1 ? ` from ${mirror}` : '';
}
