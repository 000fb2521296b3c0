// One job at a time on a host, one cycle at a time (job/turns.ts), and which request is answered by which cycle.
//
// INVARIANTS
// - A pull is answered by a cycle whose refresh began after the request came: it starts one, or joins the one
//   follow-up that waits; a cycle already running never answers it.
// - A forced pull is answered by a forced cycle only. A waiting follow-up becomes forced when one joins it.
// - An order whose client has gone before its turn is never begun, and makes no cycle stronger.
// - A cycle that was ended for another job answers no request: the cycle after that job answers them.
import type { CycleEventLine, CycleResult, Trigger } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Exclusive, Work, YieldTurn } from '../job/exclusive.js';
import { createTurns, type Turns } from '../job/turns.js';
import type { CycleRequest } from './cycle-request.js';
import { openRunningCycle, type RunningCycle } from './running-cycle.js';

export interface PullRequest {
  readonly trigger: Extract<Trigger, 'start' | 'poll' | 'pull' | 'force' | 'reload'>;
  /** The person who asked; left out for the agent's own. */
  readonly by?: string;
  readonly onEvent?: (event: CycleEventLine) => void;
  /** Who asked has gone: before its turn the pull is given up. */
  readonly gone?: AbortSignal;
}

export interface CycleRunner extends Omit<Turns, 'hear' | 'runCycle'> {
  /** Asks for a cycle and waits for the one that answers. @throws WritError INTERRUPTED when all who asked for it have gone */
  pull(request: PullRequest): Promise<CycleResult>;
  /** As exclusive, before each cycle that waits for the network: its download is ended, and begins again after the job. */
  readonly preempt: Exclusive;
  /** As preempt, also where the server cannot resume the download: the job makes the rest of it needless. */
  readonly preemptAlways: Exclusive;
  /** Reports how far the cycle is that runs now, and its events until its end. @returns how to stop that */
  readonly watch: (onEvent: (event: CycleEventLine) => void) => () => void;
}

export interface RunOptions extends Pick<CycleRequest, 'yieldTurn' | 'interrupt' | 'onSentAgain'> {
  readonly trigger: PullRequest['trigger'];
  readonly by?: string;
  readonly onEvent: (event: CycleEventLine) => void;
}

interface FollowUp {
  /** Whose answer it is to be, in the order in which they came. */
  readonly requests: PullRequest[];
  readonly answer: Promise<CycleResult>;
}

/**
 * @param run performs one cycle; undefined where it was ended for another job. It never rejects for what a cycle meets
 * @param onWork must neither throw nor delay
 */
export function createCycleRunner(
  run: (options: RunOptions & { readonly yieldTurn: YieldTurn }) => Promise<CycleResult | undefined>,
  onWork: (work: Work) => void = () => undefined,
): CycleRunner {
  let waiting: FollowUp | undefined;
  let running: RunningCycle | undefined;
  /** Jobs that wait to run before the next cycle. */
  let preempting = 0;

  const { runCycle, hear, ...turns } = createTurns(onWork);
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
    if (first === undefined) throw givenUp();
    if (preempting > 0) return undefined;
    const { trigger } = others.reduce((most, one) => (isStronger(one, most) ? one : most), first);
    const by = requests.find((one) => one.by !== undefined)?.by;
    const cycle = openRunningCycle(trigger);
    const { interrupt, onSentAgain } = cycle;
    const onEvent = (event: CycleEventLine): void => {
      hear(event);
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
      // From here on the refresh begins: who comes now needs another cycle.
      waiting = undefined;
      const present = requests.filter(({ gone }) => gone?.aborted !== true);
      return { result: await runFor(present, yieldTurn), present };
    });
    // Not within the cycle's turn: the next one comes after the job that this one was ended for.
    const answer = ended.then(({ result, present }) => result ?? join(present));
    return { requests, answer };
  };
  return {
    ...turns,
    ...{ watch, preempt: preemptBy(false), preemptAlways: preemptBy(true) },
    pull: (request) => {
      // What a forced cycle takes is not what the download before it brings.
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

/** @throws WritError INTERRUPTED when everybody who gave the order has gone; undefined stands for Writ itself, which stays */
export function requirePresent(clients: readonly (AbortSignal | undefined)[]): void {
  if (clients.every((gone) => gone?.aborted === true)) throw givenUp();
}

function givenUp(): WritError {
  return new WritError('INTERRUPTED', 'the client has gone before the turn of its order: nothing was begun');
}

/** The agent's own cycle. @returns undefined when the agent is told to end before it begins */
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
