// What the loops of an agent ask before they act: whether the state directory is still the one that the agent opened. Owns how
// soon it is compared again, and that the log and the status have each change. Writes nothing.
import type { Host } from '../state/host.js';

/** How soon a loop finds that the directory is back. */
export const vanishedGapMs = 5000;

/** @returns true where no job may begin */
export function isStateVanished({ stateMark }: Pick<Host, 'stateMark'>): boolean {
  return stateMark?.findVanished() !== undefined;
}

/** @throws WritError STATE_VANISHED */
export function requireState({ stateMark }: Pick<Host, 'stateMark'>): void {
  const vanished = stateMark?.renew();
  if (vanished !== undefined) throw vanished;
}

/** @returns a job that does nothing while the directory is not the right one */
export function unlessVanished(host: () => Host, job: () => Promise<void>): () => Promise<void> {
  return async () => {
    if (!isStateVanished(host())) await job();
  };
}

/** @returns a comparison that logs each change and calls `onNews` for it */
export function watchState(host: () => Host, onNews: () => void): () => void {
  let wasVanished = false;
  return () => {
    const { stateMark, log } = host();
    const vanished = stateMark?.renew();
    if ((vanished !== undefined) === wasVanished) return;
    wasVanished = vanished !== undefined;
    if (vanished === undefined) log.warn('the state directory is back');
    else log.error({ err: vanished }, 'the state directory vanished; nothing is done until it is back');
    onNews();
  };
}
