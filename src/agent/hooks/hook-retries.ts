// Further tries of a user's command, as its `retry` says: which ends are worth another one, how many and for how long.
// Knows nothing of what is asked, and judges nothing: the last report is the answer.
import type { HookConfig } from '../../core/config/config.js';
import type { HookVerdictKind } from '../../core/cycle/hook-verdict.js';
import type { Clock } from '../../platform/time/clock.js';
import type { HookReport } from './hook.js';

export interface RetryOptions {
  readonly clock: Clock;
  /** Of these ends, the next try may have another one. */
  readonly again: readonly HookVerdictKind[];
  /** For all tries together; left out: as long as they take. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** Between two tries: what was busy has a moment to become less so. */
const retryMs = 500;

/** A yes, a no and "not now" are answers; only an end without a verdict may be chance. */
export const withoutVerdict: readonly HookVerdictKind[] = ['broken'];

/**
 * @param ask runs it once, with what is left of the deadline as its timeout
 * @returns the report of the last try
 */
export async function retryHook<Report extends Pick<HookReport, 'verdict'>>(
  hook: HookConfig,
  { clock, again, deadlineMs = Number.POSITIVE_INFINITY, signal }: RetryOptions,
  ask: (hook: HookConfig) => Promise<Report>,
): Promise<Report> {
  const endMs = clock.monotonicMs() + deadlineMs;
  const once = (): Promise<Report> =>
    ask({ ...hook, timeoutMs: Math.max(1, Math.min(hook.timeoutMs, endMs - clock.monotonicMs())) });
  let report = await once();
  for (let tries = 0; tries < (hook.retry ?? 0) && again.includes(report.verdict.kind); tries++) {
    await clock.sleep(retryMs, signal);
    if (signal?.aborted || clock.monotonicMs() >= endMs) break;
    report = await once();
  }
  return report;
}
