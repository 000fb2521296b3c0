// The running cycle, for requests that wait for its end: its progress, and whether it can be ended early. Decides when a
// download is ended for another job (adr/0071); without-turn.ts handles the signal in the cycle.
import type { CycleEventLine, Trigger } from '../../core/cycle/cycle-report.js';
import { firstStep } from '../../core/cycle/sync-machine.js';

type Listener = (event: CycleEventLine) => void;

type Awaited = CycleEventLine & { readonly type: 'cycle.awaited' };

export interface RunningCycle {
  readonly trigger: Trigger;
  /** Aborted when another job is to run first. */
  readonly interrupt: AbortSignal;
  readonly onEvent: Listener;
  /** The server did not resume the download, so an early end would transfer the same bytes again. */
  readonly onSentAgain: () => void;
  /** Reports the progress at once, then each event of the cycle. @returns a function that stops the reports */
  watch(listener: Listener): () => void;
  /** Ends the cycle's wait for the network. @param always also ends a download that the server does not resume */
  end(always: boolean): void;
}

/** @returns the cycle before its first event. A watcher that comes before this event is informed with it. */
export function openRunningCycle(trigger: Trigger): RunningCycle {
  const controller = new AbortController();
  const watchers = new Map<Listener, { isInformed: boolean }>();
  let last: Awaited | undefined;
  let isResumable = true;
  const inform = (listener: Listener, event: CycleEventLine | undefined): void => {
    const watcher = watchers.get(listener);
    if (watcher === undefined || last === undefined) return;
    if (!watcher.isInformed) {
      watcher.isInformed = true;
      listener(isResumable ? last : { ...last, resumable: false });
    } else if (event !== undefined) listener(event);
  };
  return {
    trigger,
    interrupt: controller.signal,
    onEvent: (event) => {
      last = awaitedAfter(last, event, trigger);
      for (const listener of watchers.keys()) inform(listener, event);
    },
    onSentAgain: () => {
      isResumable = false;
    },
    watch: (listener) => {
      watchers.set(listener, { isInformed: false });
      inform(listener, undefined);
      return () => void watchers.delete(listener);
    },
    end: (always) => {
      if (always || isResumable) controller.abort();
    },
  };
}

/** @returns the progress of the cycle after this event */
function awaitedAfter(last: Awaited | undefined, event: CycleEventLine, trigger: Trigger): Awaited {
  const { cycle } = event;
  const begun: Awaited = { type: 'cycle.awaited', cycle, trigger, step: firstStep };
  switch (event.type) {
    case 'step.started':
      return { ...begun, step: event.step };
    case 'step.progress': {
      const { step, doneBytes, totalBytes } = event;
      return { ...begun, step, doneBytes, totalBytes };
    }
    default:
      return last ?? begun;
  }
}
