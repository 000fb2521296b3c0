// A canary that is a worker of its own: started on the candidate, asked by a probe until that says yes or the time is
// over, and ended with all its children. Decides nothing about bundles; what it says is a hook's report.

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

/** Between two questions: a worker that has to read a policy first is not asked a hundred times. */
const askAgainMs = 200;

/**
 * Starts, asks, ends. Both commands see one `{scratch}`, where they can meet on a socket.
 * @returns `ok` only for a worker that lived when its probe had said yes
 * @throws WritError DISK_* when their directory cannot be made
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
  let said: Answer | undefined;
  const run = runHook({ ...options, scratch, signal: joined.signal, hook: outliving(canary) });
  const end = run.catch(broken).then((report) => {
    said = report;
  });
  try {
    const { verdict, text } = await askUntilYes(canary, { ...options, scratch }, () => said);
    return { verdict, text, durationMs: clock.monotonicMs() - begunMs };
  } finally {
    // Its whole group, and under the sandbox everything that it has started.
    ending.abort();
    await end;
    removeScratch('canary.remove', durable, scratch);
  }
}

/** Its own deadline comes after the last question's: who is ended by us has not died. */
function outliving({ start, timeoutMs }: StartedCanary): HookConfig {
  return { ...start, timeoutMs: 2 * timeoutMs + askAgainMs };
}

/** A command that could not even be run has no verdict. */
function broken(error: unknown): Answer {
  const reason = error instanceof Error ? error.message : String(error);
  return { verdict: { kind: 'broken', reason }, text: reason };
}

type Answer = Pick<HookReport, 'verdict' | 'text'>;

async function askUntilYes(
  canary: StartedCanary,
  { clock, ...hookOptions }: StartedCanaryOptions & Pick<HookOptions, 'scratch'>,
  whatWorkerSaid: () => Answer | undefined,
): Promise<Answer> {
  const { signal } = hookOptions;
  const endMs = clock.monotonicMs() + canary.timeoutMs;
  let last = neverAsked;
  for (;;) {
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0 || signal?.aborted) return last;
    last = await runHook({ ...hookOptions, hook: { ...canary.probe, timeoutMs: leftMs } });
    const isYes = last.verdict.kind === 'ok' || last.verdict.kind === 'warned';
    // A yes of a worker that is dead by now is a yes of somebody else, or was its last word.
    if (isYes) await clock.sleep(askAgainMs, signal);
    const ended = whatWorkerSaid();
    if (ended !== undefined) return { verdict: verdictOfTheDead(ended.verdict), text: ended.text };
    if (isYes || last.verdict.kind === 'deferred') return last;
    await clock.sleep(Math.min(askAgainMs, Math.max(endMs - clock.monotonicMs(), 0)), signal);
  }
}

const neverAsked: Answer = { verdict: { kind: 'broken', reason: 'no time was left to run it' }, text: '' };

/** It had to stay: an exit code of its own choosing is a refusal, unless it says that it could not even begin. */
function verdictOfTheDead({ kind, reason }: HookVerdict): HookVerdict {
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
