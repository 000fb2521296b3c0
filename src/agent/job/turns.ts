// Which job changes the host now.
//
// INVARIANTS
// - One job has the turn; swaps, rollbacks and notifications of pending workers never overlap.
// - A cycle gives its turn back while it waits for the network (adr/0060). Short jobs run then; cycles, and jobs that replace
//   the host or sweep staging, wait until it has ended. Each job comes after those that asked before it.
import type { CycleEventListener, Exclusive, Work, YieldTurn } from './exclusive.js';

export interface Turns {
  /** Runs a cycle, after those that were asked for before. */
  readonly runCycle: <T>(job: (yieldTurn: YieldTurn) => Promise<T>) => Promise<T>;
  /** Runs another job alone, after the cycles that run and wait now. */
  readonly exclusive: Exclusive;
  /** Runs a short job alone, also between the steps of a cycle that waits for the network. */
  readonly runShort: Exclusive;
  /** As exclusive, where no cycle runs or waits; else the job is left out. */
  readonly runUnlessCycle: (job: () => Promise<void>) => Promise<void>;
  /** How a job that runs alone reports its progress. */
  readonly reportEvent: CycleEventListener;
  /** Resolves when nothing runs and nothing waits. */
  readonly idle: () => Promise<void>;
}

/**
 * Creates the queue of the jobs of one host. Nothing runs yet. Throws nothing.
 * @param onWork called when a job begins, reports a step, and ends; must neither throw nor delay
 * @returns the queue. Its functions pass on the result or the error of their job; a failed job does not stop the next one. Jobs
 *   run in the order of their requests, but a short job also runs while a cycle waits for the network
 */
export function createTurns(onWork: (work: Work) => void): Turns {
  const cycles = createQueue();
  const turns = createQueue();
  /** The last report of a cycle that waits without the turn: it is repeated after each short job. */
  let awaited: Work | undefined;
  let last: Work = { kind: 'ended' };
  const reportWork = (work: Work): void => {
    last = work;
    onWork(work);
  };
  const reportEvent: CycleEventListener = (event) => {
    if (!('step' in event)) return;
    const { step } = event;
    if (event.type !== 'step.progress') return reportWork({ kind: 'step', step });
    const { doneBytes, totalBytes } = event;
    const work: Work = { kind: 'step', step, download: { doneBytes, totalBytes } };
    if (awaited !== undefined) awaited = work;
    reportWork(work);
  };
  const runInTurn = async <T>(job: (yieldTurn: YieldTurn) => Promise<T>): Promise<T> => {
    let giveBack = await turns.enter();
    const yieldTurn: YieldTurn = async (wait) => {
      awaited = last;
      giveBack();
      try {
        return await wait();
      } finally {
        giveBack = await turns.enter();
        awaited = undefined;
      }
    };
    reportWork({ kind: 'began' });
    try {
      return await job(yieldTurn);
    } finally {
      reportWork(awaited ?? { kind: 'ended' });
      giveBack();
    }
  };
  const runCycle: Turns['runCycle'] = async (job) => {
    const leave = await cycles.enter();
    try {
      return await runInTurn(job);
    } finally {
      leave();
    }
  };
  const exclusive: Exclusive = (job) => runCycle(() => job(reportEvent));
  return {
    ...{ runCycle, exclusive, reportEvent },
    runShort: (job) => runInTurn(() => job(reportEvent)),
    runUnlessCycle: async (job) => {
      if (cycles.isIdle()) await exclusive(job);
    },
    idle: async () => {
      while (!cycles.isIdle() || !turns.isIdle()) await Promise.all([cycles.idle(), turns.idle()]);
    },
  };
}

interface Queue {
  /** Resolves with how to leave it, when all that entered before have left. */
  enter(): Promise<() => void>;
  isIdle(): boolean;
  /** Resolves when those that have entered by now have left. */
  idle(): Promise<void>;
}

function createQueue(): Queue {
  let entered = 0;
  let last: Promise<void> = Promise.resolve();
  return {
    enter: async () => {
      const before = last;
      let leave = (): void => undefined;
      last = new Promise((resolve) => {
        leave = resolve;
      });
      entered += 1;
      await before;
      return () => {
        entered -= 1;
        leave();
      };
    },
    isIdle: () => entered === 0,
    idle: () => last,
  };
}
