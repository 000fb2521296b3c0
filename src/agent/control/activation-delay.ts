// Repeats a pull that only waits for an activation delay, for up to a minute, so that its caller gets the result of the workers.
// Longer delays are returned at once, with a hint that names what ends them.
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import type { Clock } from '../../platform/time/clock.js';
import type { CycleRunner, PullRequest } from '../cycle/cycle-runner.js';

const maxWaitMs = 60_000;

export interface DelayOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs' | 'sleep'>;
  readonly stop: AbortSignal;
}

/** Pulls with the runner, and repeats the pull after a short activation delay. @throws WritError as the runner's pull */
export async function pullAfterDelay(
  runner: Pick<CycleRunner, 'pull'>,
  request: PullRequest,
  options: DelayOptions,
): Promise<CycleResult> {
  const pull = async (): Promise<{ result: CycleResult }> => ({ result: await runner.pull(request) });
  return (await repeatAfterDelay(pull, { ...options, trigger: request.trigger })).result;
}

/** @param pull runs one cycle. @returns the end of the last cycle */
export async function repeatAfterDelay<End extends { readonly result: CycleResult }>(
  pull: () => Promise<End>,
  { clock, stop, trigger }: DelayOptions & Pick<PullRequest, 'trigger'>,
): Promise<End> {
  const endMs = clock.monotonicMs() + maxWaitMs;
  for (;;) {
    const end = await pull();
    const untilMs = activationTimeOf(end.result);
    if (trigger !== 'pull' || untilMs === undefined || stop.aborted) return end;
    const waitMs = Math.max(untilMs - clock.nowMs(), 0);
    if (clock.monotonicMs() + waitMs > endMs) return end;
    await clock.sleep(waitMs, stop);
    if (stop.aborted) return end;
  }
}

/** Replaces the hints of timed waits, because on a host without an agent they end at the next command only. */
export function withStandaloneHints(result: CycleResult): CycleResult {
  return { ...result, problems: result.problems.map(forNextCommand) };
}

function forNextCommand(problem: Problem): Problem {
  const { code, facts } = problem;
  if (!timedCodes.has(code) || typeof facts['untilMs'] !== 'number') return problem;
  const hint = 'No agent runs here: run `writ pull` again later, or `writ pull --force` now.';
  return { ...problem, hint };
}

const timedCodes: ReadonlySet<Problem['code']> = new Set([
  'ACTIVATION_PACED',
  'ACTIVATION_PAUSED',
  'BAKE_GAP',
  'LOADER_DEFERRED',
]);

/** @returns the end of the activation delay, in epoch milliseconds; undefined if the pull has another problem too */
function activationTimeOf({ outcome, problems }: CycleResult): number | undefined {
  if (outcome !== 'deferred') return undefined;
  const times = problems.map(({ code, facts }) =>
    code === 'ACTIVATION_PACED' ? facts['untilMs'] : undefined,
  );
  const known = times.filter((one) => typeof one === 'number');
  return known.length === times.length && known.length > 0 ? Math.max(...known) : undefined;
}
