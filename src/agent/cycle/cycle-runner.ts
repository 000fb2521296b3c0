// Assigns each request to a cycle. One job and one cycle run at a time on a host (job/turns.ts).
//
// INVARIANTS
// - The cycle that answers a pull begins its refresh after the request arrived. A pull starts a cycle, or joins the one
//   follow-up that waits; a running cycle never answers it.
// - Only a forced cycle answers a forced pull. A waiting follow-up becomes forced when a forced pull joins it.
// - A request starts no cycle and forces none after its client disconnected.
// - A cycle that ended for another job answers no request: the cycle after that job answers them.
import type { CycleEventLine, CycleResult, Trigger } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Exclusive, Work, YieldTurn } from '../job/exclusive.js';
import { createTurns, type Turns } from '../job/turns.js';
import type { CycleRequest } from './cycle-request.js';
import { openRunningCycle, type RunningCycle } from './running-cycle.js';

export interface PullRequest {
  readonly trigger: Extract<Trigger, 'start' | 'poll' | 'pull' | 'force' | 'reload'>;
  /** The operator who requested it; omitted for requests of the agent itself. */
  readonly by?: string;
  readonly onEvent?: (event: CycleEventLine) => void;
  /** Aborted when the client disconnects; the pull is dropped then, unless its cycle has begun. */
  readonly gone?: AbortSignal;
}

export interface CycleRunner extends Omit<Turns, 'reportEvent' | 'runCycle'> {
  /** Requests a cycle and waits for its result. @throws WritError INTERRUPTED when all clients left before it began */
  pull(request: PullRequest): Promise<CycleResult>;
  /** As exclusive, but ahead of cycles that wait for the network: a download is ended, and resumed after the job. */
  readonly preempt: Exclusive;
  /** As preempt, also if the server cannot resume the download, because the job makes the download unnecessary. */
  readonly preemptAlways: Exclusive;
  /** Reports the progress of the running cycle, then its events until its end. @returns a function that stops the reports */
  readonly watch: (onEvent: (event: CycleEventLine) => void) => () => void;
}

export interface RunOptions extends Pick<CycleRequest, 'yieldTurn' | 'interrupt' | 'onSentAgain'> {
  readonly trigger: PullRequest['trigger'];
  readonly by?: string;
  readonly onEvent: (event: CycleEventLine) => void;
}

interface FollowUp {
  /** The requests that this cycle answers, in the order of arrival. */
  readonly requests: PullRequest[];
  readonly answer: Promise<CycleResult>;
}

/**
 * Creates a runner without a running cycle. It starts none by itself. Throws nothing.
 * @param run performs one cycle. Undefined: the cycle ended early for another job, and its requests join the next cycle
 * @param onWork called when a job begins, reaches a step, and ends; must neither throw nor delay
 * @returns the runner. Requests that wait for the same cycle get the same result; that cycle has the strongest of their triggers
 *   (force, pull, reload, then poll and start) and the first `by`. `pull` also rejects with an error that `run` rejects with
 */
export function createCycleRunner(
  run: (options: RunOptions & { readonly yieldTurn: YieldTurn }) => Promise<CycleResult | undefined>,
  onWork: (work: Work) => void = () => undefined,
): CycleRunner {
  let waiting: FollowUp | undefined;
  let running: RunningCycle | undefined;
  /** Jobs that wait to run before the next cycle. */
  let preempting = 0;

  const { runCycle, reportEvent, ...turns } = createTurns(onWork);
  const preemptBy =
    (always: boolean): Exclusive =>
    async (job) => {
      preempting += 1;
      running?.end(always);
      return turns.exclusive((onEvent) => {
        preempting -= 1;
        return job(onEvent);
      });
    };
  const watch: CycleRunner['watch'] = (onEvent) => running?.watch(onEvent) ?? (() => undefined);
  const join = (requests: readonly PullRequest[]): Promise<CycleResult> => {
    waiting ??= queue();
    waiting.requests.push(...requests);
    return waiting.answer;
  };
  const runFor = async (
    requests: readonly PullRequest[],
    yieldTurn: YieldTurn,
  ): Promise<CycleResult | undefined> => {
    const [first, ...others] = requests;
    if (first === undefined) throw clientGoneError();
    if (preempting > 0) return undefined;
    const { trigger } = others.reduce((most, one) => (isStronger(one, most) ? one : most), first);
    const by = requests.find((one) => one.by !== undefined)?.by;
    const cycle = openRunningCycle(trigger);
    const { interrupt, onSentAgain } = cycle;
    const onEvent = (event: CycleEventLine): void => {
      reportEvent(event);
      for (const one of requests) one.onEvent?.(event);
      cycle.onEvent(event);
    };
    running = cycle;
    try {
      return await run({ trigger, onEvent, yieldTurn, interrupt, onSentAgain, ...given({ by }) });
    } finally {
      running = undefined;
    }
  };
  const queue = (): FollowUp => {
    const requests: PullRequest[] = [];
    const ended = runCycle(async (yieldTurn) => {
      // The refresh begins now, so a later request needs another cycle.
      waiting = undefined;
      const present = requests.filter(({ gone }) => gone?.aborted !== true);
      return { result: await runFor(present, yieldTurn), present };
    });
    // Outside of this cycle's lock, because the next cycle runs after the job that ended this one.
    const answer = ended.then(({ result, present }) => result ?? join(present));
    return { requests, answer };
  };
  return {
    ...turns,
    ...{ watch, preempt: preemptBy(false), preemptAlways: preemptBy(true) },
    pull: (request) => {
      // A forced cycle does not use the download of the cycle before it.
      const isForced = request.trigger === 'force' && request.gone?.aborted !== true;
      if (isForced && running?.trigger !== 'force') running?.end(false);
      const answer = join([request]);
      if (request.onEvent !== undefined) watch(request.onEvent);
      return answer;
    },
  };
}

const strength: Readonly<Record<PullRequest['trigger'], number>> = {
  start: 0,
  poll: 0,
  reload: 1,
  pull: 2,
  force: 3,
};

function isStronger(one: PullRequest, other: PullRequest): boolean {
  return strength[one.trigger] > strength[other.trigger];
}

/** @throws WritError INTERRUPTED when all clients have disconnected; undefined stands for Writ itself, which stays */
export function requirePresent(clients: readonly (AbortSignal | undefined)[]): void {
  if (clients.every((gone) => gone?.aborted === true)) throw clientGoneError();
}

function clientGoneError(): WritError {
  return new WritError('INTERRUPTED', 'the client has gone before the turn of its order: nothing was begun');
}

/** Requests a cycle for the agent itself. @returns undefined when the agent stops before the cycle begins */
export async function pullUnlessStopping(
  runner: Pick<CycleRunner, 'pull'>,
  trigger: 'start' | 'poll' | 'reload',
): Promise<CycleResult | undefined> {
  try {
    return await runner.pull({ trigger });
  } catch (error) {
    if (isWritError(error) && error.code === 'AGENT_STOPPING') return undefined;
    throw error;
  }
}
