// A canary of kind `start`: starts a worker on the candidate, probes it until the probe passes or the timeout is over, and ends it
// with all its children. Returns a hook report; the caller decides about bundles.

import { join } from 'node:path';
import type { CanaryConfig, HookConfig } from '../../core/config/config.js';
import type { HookVerdict } from '../../core/cycle/hook-verdict.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { HookOptions, HookReport } from '../hooks/hook.js';
import { removeScratch, runHook } from '../hooks/run-hook.js';

export type StartedCanary = Extract<CanaryConfig, { readonly kind: 'start' }>;

export interface StartedCanaryOptions extends Omit<HookOptions, 'hook' | 'scratch'> {
  readonly clock: Clock;
}

/** The pause between two probes, while the worker reads the policy. */
const probeIntervalMs = 200;

/**
 * Starts the worker, probes it, and ends it. Both commands share one `{scratch}`, for example for a socket.
 * @returns `ok` only if the worker was still running after the probe passed
 * @throws WritError DISK_* if the scratch directory cannot be created
 */
export async function runStartedCanary(
  canary: StartedCanary,
  options: StartedCanaryOptions,
): Promise<HookReport> {
  const { clock, scratchRoot, durable } = options;
  const begunMs = clock.monotonicMs();
  const scratch = durable.makeScratch('canary.scratch', join(scratchRoot, 'canary-'));
  const ending = new AbortController();
  using joined = joinSignals(ending.signal, options.signal);
  let workerEnd: Answer | undefined;
  const run = runHook({ ...options, scratch, signal: joined.signal, hook: withLaterTimeout(canary) });
  const end = run.catch(toBrokenAnswer).then((report) => {
    workerEnd = report;
  });
  try {
    const { verdict, text } = await probeUntilPassed(canary, { ...options, scratch }, () => workerEnd);
    return { verdict, text, durationMs: clock.monotonicMs() - begunMs };
  } finally {
    // Ends its process group, and in the sandbox all processes that it started.
    ending.abort();
    await end;
    removeScratch('canary.remove', durable, scratch);
  }
}

/** @returns the start command with a timeout after that of the last probe, so that the timeout cannot end the worker first */
function withLaterTimeout({ start, timeoutMs }: StartedCanary): HookConfig {
  return { ...start, timeoutMs: 2 * timeoutMs + probeIntervalMs };
}

/** A command that could not run has no verdict. */
function toBrokenAnswer(error: unknown): Answer {
  const reason = error instanceof Error ? error.message : String(error);
  return { verdict: { kind: 'broken', reason }, text: reason };
}

type Answer = Pick<HookReport, 'verdict' | 'text'>;

async function probeUntilPassed(
  canary: StartedCanary,
  { clock, ...hookOptions }: StartedCanaryOptions & Pick<HookOptions, 'scratch'>,
  readWorkerEnd: () => Answer | undefined,
): Promise<Answer> {
  const { signal } = hookOptions;
  const endMs = clock.monotonicMs() + canary.timeoutMs;
  let last = notProbed;
  for (;;) {
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0 || signal?.aborted) return last;
    last = await runHook({ ...hookOptions, hook: { ...canary.probe, timeoutMs: leftMs } });
    const isYes = last.verdict.kind === 'ok' || last.verdict.kind === 'warned';
    // After a passed probe, wait and check that the worker still runs: another process may have answered, or it may have died.
    if (isYes) await clock.sleep(probeIntervalMs, signal);
    const ended = readWorkerEnd();
    if (ended !== undefined) return { verdict: judgeEarlyExit(ended.verdict), text: ended.text };
    if (isYes || last.verdict.kind === 'deferred') return last;
    await clock.sleep(Math.min(probeIntervalMs, Math.max(endMs - clock.monotonicMs(), 0)), signal);
  }
}

const notProbed: Answer = { verdict: { kind: 'broken', reason: 'no time was left to run it' }, text: '' };

/** The worker had to keep running, so its early exit is a refusal, except for codes that mean that it could not start. */
function judgeEarlyExit({ kind, reason }: HookVerdict): HookVerdict {
  switch (kind) {
    case 'refused':
    case 'warned':
      return { kind: 'refused', reason: `it exited early: ${reason}` };
    case 'ok':
      return {
        kind: 'broken',
        reason: 'it exited early without an error: it must stay in the foreground',
      };
    case 'deferred':
    case 'broken':
    case 'unreachable':
      return { kind, reason: `it ended: ${reason}` };
  }
}
