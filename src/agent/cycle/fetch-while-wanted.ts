// Ends a download when its releases are no longer wanted. Attack: a server without keys can delay an archive for hours, and a
// withdrawal, a pause or a rollback must not wait for it. So metadata is refreshed periodically during the download.
import { isWritError, type WritError } from '../../core/errors.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import { noteDownloading } from '../freshness/missed-releases.js';
import { attemptOf, attemptWith } from '../job/cycle-result.js';
import type { Job } from '../job/job.js';
import { findOffers, type Offers } from '../select/find-offers.js';
import type { CycleRequest } from './cycle-request.js';
import { askRepository, noteMirrorFailures } from './refresh-trust.js';

export interface Download<T> {
  readonly download: (signal: AbortSignal) => Promise<T>;
  /** @param offers of the last refresh; undefined if it failed */
  readonly isWanted: (offers: Offers | undefined) => boolean;
}

/** @returns undefined when the download was ended early. @throws the errors of the download */
export async function fetchWhileWanted<T>(
  job: Job,
  { signal, waitForRefresh, onRefreshed }: CycleRequest,
  { download, isWanted }: Download<T>,
): Promise<T | undefined> {
  if (waitForRefresh === undefined) return download(signal);
  onRefreshed?.(attemptOf(job.record));
  const [ended, unwanted] = [new AbortController(), new AbortController()];
  using downloading = joinSignals(signal, unwanted.signal);
  using watching = joinSignals(signal, ended.signal);
  const watch = async (): Promise<void> => {
    while (!watching.signal.aborted) {
      await waitForRefresh(watching.signal);
      if (watching.signal.aborted) return;
      noteDownloading(
        job.host,
        [...job.record.bundles.values()],
        job.record.refresh?.atMs ?? job.host.clock.nowMs(),
      );
      const offers = await valueOrLog(job, () => refreshOffers(job, watching.signal));
      // Reported at once, because the age of the metadata grows during the download.
      onRefreshed?.(attemptWith(job.record.refresh, problemsIn(offers)));
      const isStillWanted = await valueOrLog(job, async () => isWanted(offers));
      if (isStillWanted === false) return unwanted.abort();
    }
  };
  const watched = watch();
  try {
    const value = await download(downloading.signal);
    return unwanted.signal.aborted ? undefined : value;
  } finally {
    ended.abort();
    await watched;
  }
}

function problemsIn(offers: Offers | undefined): WritError[] {
  return [...(offers?.values() ?? [])].filter(isWritError);
}

async function refreshOffers(job: Job, signal: AbortSignal): Promise<Offers> {
  await askRepository(job, { conditional: 'yes', signal });
  return findOffersOf(job, signal);
}

/** @returns undefined when the function failed; the download continues then, because the answer is unknown */
async function valueOrLog<T>({ host, progress }: Job, act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    host.log.debug({ cycle: progress.cycle, err: error }, 'a refresh during a download failed');
    return undefined;
  }
}

/**
 * @returns the offered release of each bundle, or its error: each bundle of the host has an entry, also after an
 * abort.
 * A mirror that failed before another one answered is added to the record of the job.
 */
export function findOffersOf(job: Job, signal: AbortSignal): Promise<Offers> {
  const onMirrorFailed = (failure: MirrorFailure): void => noteMirrorFailures(job, [failure]);
  return findOffers(job.host, { signal, onMirrorFailed });
}
