// How far the download is that a running agent is in the midst of, for its status: by what the job tells of itself. Owns when
// there is none; nobody is told of it, who asks is answered.
import type { DownloadedBytes } from '../../core/status/status.js';
import type { AgentObserver } from './observer.js';

export interface DownloadWatch {
  /** Attached to the agent. */
  readonly observer: AgentObserver;
  now(): DownloadedBytes | undefined;
}

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
