// One job at a time on a host, one cycle at a time (job/turns.ts), and which request is answered by which cycle.
//
// INVARIANTS
// - A pull is answered by a cycle whose refresh began after the request came: it starts one, or joins the one
//   follow-up that waits; a cycle already running never answers it.
// - A forced pull is answered by a forced cycle only. A waiting follow-up becomes forced when one joins it.
// - An order whose client has gone before its turn is never begun, and makes no cycle stronger.
import type { CycleEventLine, CycleResult, Trigger } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { Exclusive, Work, YieldTurn } from '../job/exclusive.js';
import { createTurns, type Turns } from '../job/turns.js';
import type { CycleRequest } from './cycle-request.js';

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
  /** As exclusive, and what cycles before it wait for from the network is ended: the job makes it needless. */
  readonly interruptCycles: Exclusive;
}

export interface RunOptions extends Pick<CycleRequest, 'yieldTurn' | 'interrupt'> {
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
 * @param run performs one cycle; it never rejects for what a cycle meets
 * @param onWork must neither throw nor delay
 */
export function createCycleRunner(
  run: (options: RunOptions & { readonly yieldTurn: YieldTurn }) => Promise<CycleResult>,
  onWork: (work: Work) => void = () => undefined,
): CycleRunner {
  let waiting: FollowUp | undefined;
  let interrupts = 0;
  let interrupt = new AbortController();

  const { runCycle, hear, ...turns } = createTurns(onWork);
  const interruptCycles: Exclusive = async (job) => {
    interrupts += 1;
    interrupt.abort();
    return turns.exclusive((onEvent) => {
      interrupts -= 1;
      return job(onEvent);
    });
  };
  const queue = (): FollowUp => {
    const requests: PullRequest[] = [];
    const answer = runCycle(async (yieldTurn) => {
      // From here on the refresh begins: who comes now needs another cycle.
      waiting = undefined;
      const [first, ...others] = requests.filter(({ gone }) => gone?.aborted !== true);
      if (first === undefined) throw givenUp();
      const present = [first, ...others];
      const { trigger } = others.reduce((most, one) => (isStronger(one, most) ? one : most), first);
      const by = present.find((one) => one.by !== undefined)?.by;
      const onEvent = (event: CycleEventLine): void => {
        hear(event);
        for (const one of present) one.onEvent?.(event);
      };
      interrupt = new AbortController();
      if (interrupts > 0) interrupt.abort();
      return run({
        trigger,
        onEvent,
        yieldTurn,
        interrupt: interrupt.signal,
        ...(by === undefined ? {} : { by }),
      });
    });
    return { requests, answer };
  };
  return {
    ...turns,
    interruptCycles,
    pull: (request) => {
      waiting ??= queue();
      waiting.requests.push(request);
      return waiting.answer;
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
