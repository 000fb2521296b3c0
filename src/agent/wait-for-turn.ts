// A pull whose release only waits for the quiet of a group waits with it, for a while: who asked wants to hear how its
// own tell ended, and not that it is to come. Longer waits are said at once.
import type { CycleResult } from '../core/cycle-report.js';
import type { Clock } from '../platform/clock.js';
import type { CycleRunner, PullRequest } from './cycle-runner.js';

const maxWaitMs = 60_000;

export interface TurnOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs' | 'sleep'>;
  readonly stop: AbortSignal;
}

/** As the runner's pull. */
export async function pullInTurn(
  runner: Pick<CycleRunner, 'pull'>,
  request: PullRequest,
  { clock, stop }: TurnOptions,
): Promise<CycleResult> {
  const endMs = clock.monotonicMs() + maxWaitMs;
  for (;;) {
    const result = await runner.pull(request);
    const untilMs = turnOf(result);
    if (request.trigger !== 'pull' || untilMs === undefined || stop.aborted) return result;
    const waitMs = Math.max(untilMs - clock.nowMs(), 0);
    if (clock.monotonicMs() + waitMs > endMs) return result;
    await clock.sleep(waitMs, stop);
    if (stop.aborted) return result;
  }
}

/** @returns when what waits may be tried again; undefined where something else is the matter too */
function turnOf({ outcome, problems }: CycleResult): number | undefined {
  if (outcome !== 'deferred') return undefined;
  const times = problems.map(({ code, facts }) =>
    code === 'ACTIVATION_PACED' ? facts['untilMs'] : undefined,
  );
  const known = times.filter((one) => typeof one === 'number');
  return known.length === times.length && known.length > 0 ? Math.max(...known) : undefined;
}
