// Checks whether the state directory is still the one that the agent opened; every loop calls it before it changes the host. Reports
// each change to the log and the status. Writes nothing.
import type { Host } from '../state/host.js';

/** The interval at which a loop checks whether the directory is back. */
export const vanishedGapMs = 5000;

/** @returns true if the state directory vanished, so that no job may begin */
export function isStateVanished({ stateMark }: Pick<Host, 'stateMark'>): boolean {
  return stateMark?.findVanished() !== undefined;
}

/**
 * Compares the state directory with the one that this process opened.
 * @throws WritError STATE_VANISHED where it is not the same any more
 */
export function requireState({ stateMark }: Pick<Host, 'stateMark'>): void {
  const vanished = stateMark?.renew();
  if (vanished !== undefined) throw vanished;
}

/** @returns a job that does nothing while the state directory has vanished */
export function unlessVanished(host: () => Host, job: () => Promise<void>): () => Promise<void> {
  return async () => {
    if (!isStateVanished(host())) await job();
  };
}

/** @returns a check that logs each change and calls `onChange` for it */
export function watchState(host: () => Host, onChange: () => void): () => void {
  let wasVanished = false;
  return () => {
    const { stateMark, log } = host();
    const vanished = stateMark?.renew();
    if ((vanished !== undefined) === wasVanished) return;
    wasVanished = vanished !== undefined;
    if (vanished === undefined) log.warn('the state directory is back');
    else log.error({ err: vanished }, 'the state directory vanished; nothing is done until it is back');
    onChange();
  };
}
