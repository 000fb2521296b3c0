// A pull whose release only waits for the quiet of a group waits with it, for a while: who asked wants to hear
// how the workers took it, and not that they are to be notified. Longer waits are said at once, and who ends them.
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import type { Clock } from '../../platform/time/clock.js';
import type { CycleRunner, PullRequest } from '../cycle/cycle-runner.js';

const maxWaitMs = 60_000;

export interface TurnOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs' | 'sleep'>;
  readonly stop: AbortSignal;
}

/** As the runner's pull. */
export async function pullInTurn(
  runner: Pick<CycleRunner, 'pull'>,
  request: PullRequest,
  options: TurnOptions,
): Promise<CycleResult> {
  const pull = async (): Promise<{ result: CycleResult }> => ({ result: await runner.pull(request) });
  return (await inTurn(pull, { ...options, trigger: request.trigger })).result;
}

/** @param pull one cycle. @returns the end of the last one */
export async function inTurn<End extends { readonly result: CycleResult }>(
  pull: () => Promise<End>,
  { clock, stop, trigger }: TurnOptions & Pick<PullRequest, 'trigger'>,
): Promise<End> {
  const endMs = clock.monotonicMs() + maxWaitMs;
  for (;;) {
    const end = await pull();
    const untilMs = turnOf(end.result);
    if (trigger !== 'pull' || untilMs === undefined || stop.aborted) return end;
    const waitMs = Math.max(untilMs - clock.nowMs(), 0);
    if (clock.monotonicMs() + waitMs > endMs) return end;
    await clock.sleep(waitMs, stop);
    if (stop.aborted) return end;
  }
}

/** @returns the result as a host without an agent has to say it: what waits for a time waits for the next command */
export function withoutAgent(result: CycleResult): CycleResult {
  return { ...result, problems: result.problems.map(forNextCommand) };
}

function forNextCommand(problem: Problem): Problem {
  const { code, facts } = problem;
  if (!waitsForTime.has(code) || typeof facts['untilMs'] !== 'number') return problem;
  const hint = 'No agent runs here: run `writ pull` again later, or `writ pull --force` now.';
  return { ...problem, hint };
}

const waitsForTime: ReadonlySet<Problem['code']> = new Set([
  'ACTIVATION_PACED',
  'ACTIVATION_PAUSED',
  'BAKE_GAP',
  'LOADER_DEFERRED',
]);

/** @returns when what waits may be tried again; undefined where something else is the matter too */
function turnOf({ outcome, problems }: CycleResult): number | undefined {
  if (outcome !== 'deferred') return undefined;
  const times = problems.map(({ code, facts }) =>
    code === 'ACTIVATION_PACED' ? facts['untilMs'] : undefined,
  );
  const known = times.filter((one) => typeof one === 'number');
  return known.length === times.length && known.length > 0 ? Math.max(...known) : undefined;
}
