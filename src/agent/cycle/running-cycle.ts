// The cycle that runs now, for the requests that wait for its end: its progress, and whether it may be ended early. Owns when a
// download is ended for another job (adr/0071); what the cycle does at the signal is without-turn.ts.
import type { CycleEventLine, Trigger } from '../../core/cycle/cycle-report.js';
import { firstStep } from '../../core/cycle/sync-machine.js';

type Listener = (event: CycleEventLine) => void;

type Awaited = CycleEventLine & { readonly type: 'cycle.awaited' };

export interface RunningCycle {
  readonly trigger: Trigger;
  /** Aborted when another job is to run first. */
  readonly interrupt: AbortSignal;
  readonly onEvent: Listener;
  /** The server sent from the first byte what was here in part: an early end would cost the same bytes once more. */
  readonly onSentAgain: () => void;
  /** Reports at once how far the cycle is, then each of its events. @returns how to stop that */
  watch(listener: Listener): () => void;
  /** Ends what the cycle waits for from the network. @param always also a download that no server resumes */
  end(always: boolean): void;
}

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

/** @returns how far the cycle is after this event */
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
