// Looks over the active policy from time to time, in the background and at a bounded rate, as long as the agent runs, and
// when somebody asks. Owns the times; what a look finds and repairs is scrub's.
import { isWritError } from '../../core/errors.js';
import { computeScrubDelayMs } from '../../core/status/scrub-state.js';
import type { VerifyResult } from '../../core/status/verify-report.js';
import { maxTimerMs } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { boundedPace } from '../../platform/time/rate-limit.js';
import type { Caller } from '../control/control-socket.js';
import { type CycleRunner, requirePresent } from '../cycle/cycle-runner.js';
import { type ScrubResult, scrub } from '../integrity/scrub.js';
import { verifyPolicy } from '../integrity/verify-policy.js';
import type { Exclusive } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { repairNow } from '../select/pause.js';
import type { Host } from '../state/host.js';
import { isStateVanished, requireState, vanishedGapMs } from './vanished-state.js';

export interface ScrubberOptions {
  /** Asked before each look: a reload may have replaced it. */
  readonly host: () => Host;
  readonly runner: Pick<CycleRunner, 'preempt' | 'runShort' | 'watch'>;
  /** Notified of each look that came to its end. */
  readonly onLook: (look: ScrubResult) => void;
  readonly stop: AbortSignal;
}

export interface Scrubber {
  /** Looks at its times until the agent is told to end; never rejects. */
  run(): Promise<void>;
  /** `writ verify`. @throws WritError as verifyPolicy; INTERRUPTED when its client has gone before a turn that it waits for */
  verify(
    wanted: { readonly repair: boolean; readonly by: string },
    caller: Pick<Caller, 'onEvent' | 'gone'>,
  ): Promise<VerifyResult>;
  /** The configuration is another one: the next time is another one too. */
  reloaded(): void;
}

export function createScrubber(options: ScrubberOptions): Scrubber {
  const { stop, host } = options;
  let waiting = new AbortController();
  return {
    run: async () => {
      while (!stop.aborted) {
        waiting = new AbortController();
        const { clock } = host();
        using sooner = joinSignals(stop, waiting.signal);
        await clock.sleep(untilNextLook(host()), sooner.signal);
        if (stop.aborted || waiting.signal.aborted) continue;
        if (isStateVanished(host())) await clock.sleep(vanishedGapMs, sooner.signal);
        else await lookOnce(options);
      }
    },
    verify: async ({ repair, by }, caller) => {
      requireState(host());
      const { onLook, runner } = options;
      const { onEvent } = caller;
      const exclusive = whilePresent(repair ? preemptReporting(runner, onEvent) : runner.runShort, caller);
      const asked = { by, repair: repair ? 'yes' : 'no', signal: stop, onEvent } as const;
      return verifyPolicy({ ...asked, host, onLook, exclusive });
    },
    reloaded: () => waiting.abort(),
  };
}

/** Reports the cycle that a repair waits for. */
function preemptReporting(
  { preempt, watch }: ScrubberOptions['runner'],
  onEvent: Caller['onEvent'],
): Exclusive {
  return async (job) => {
    const stopWatching = watch(onEvent);
    return preempt((onJobEvent) => {
      stopWatching();
      return job(onJobEvent);
    });
  };
}

/** Reading needs no turn. A repair of a client that has gone is not begun. */
function whilePresent(exclusive: Exclusive, { gone }: Pick<Caller, 'gone'>): Exclusive {
  return (job) =>
    exclusive((hear) => {
      requirePresent([gone]);
      return job(hear);
    });
}

function untilNextLook({ clock, config, ledger }: Host): number {
  const { everyMs } = config.scrub;
  if (everyMs === undefined) return maxTimerMs;
  return computeScrubDelayMs(ledger.read().scrub, { everyMs, nowMs: clock.nowMs() });
}

/** What keeps it from looking now is no reason to end the agent: it looks again at the next time. */
async function lookOnce({ host, runner, onLook, stop }: ScrubberOptions): Promise<void> {
  const { clock, config, log } = host();
  const { everyMs, bytesPerSecond } = config.scrub;
  if (everyMs === undefined) return;
  try {
    const look = await scrub(host, {
      cycle: newCycleId(),
      contents: 'digests',
      pace: boundedPace({ clock, bytesPerSecond, signal: stop }),
      repair: repairNow(host()),
      download: 'yes',
      signal: stop,
      exclusive: runner.preempt,
    });
    log.info({ outcome: look.outcome, found: look.damage.length }, 'scanned the policy on disk');
    onLook(look);
  } catch (error) {
    if (isWritError(error) && error.code === 'INTERRUPTED') return;
    log.error({ err: error }, 'the policy on disk could not be scanned');
    // A disk that cannot be read is not read again without a pause.
    await clock.sleep(everyMs, stop);
  }
}
