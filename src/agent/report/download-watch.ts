// The progress of the current download of a running agent, for its status report. Derived from the progress events of the job; a new
// value triggers no report.
import type { DownloadedBytes } from '../../core/status/status.js';
import type { AgentObserver } from './observer.js';

export interface DownloadWatch {
  /** Attached to the agent. */
  readonly observer: AgentObserver;
  /** @returns the bytes so far and in total; undefined without a download */
  now(): DownloadedBytes | undefined;
}

/** @returns a watch without a download, until its observer receives a step with one */
export function watchDownloads(): DownloadWatch {
  let last: DownloadedBytes | undefined;
  return {
    observer: {
      // A short job may begin during a download. After the last progress comes another step, or the end.
      onWork: (work) => {
        if (work.kind !== 'began') last = work.kind === 'step' ? work.download : undefined;
      },
    },
    now: () => last,
  };
}
