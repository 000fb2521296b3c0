// One deadline for a whole exchange, joined with the signal of the caller. Owns its timer, because AbortSignal.any on a long-lived
// signal would keep every exchange of the process in memory.
import { WritError } from '../../core/errors.js';

export interface Deadline {
  readonly signal: AbortSignal;
  /** Stops the timer and removes the listener of the caller's signal. May be called more than once. */
  end(): void;
}

/**
 * @returns a signal that aborts with WritError DOWNLOAD_TIMEOUT after timeoutMs, or with INTERRUPTED when the
 *   caller's signal aborts
 */
export function startDeadline(timeoutMs: number, outer?: AbortSignal): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(
      new WritError('DOWNLOAD_TIMEOUT', `not done after ${timeoutMs} ms`, { facts: { expected: timeoutMs } }),
    );
  }, timeoutMs);
  const interrupt = (): void => {
    controller.abort(new WritError('INTERRUPTED', 'the download was interrupted', { cause: outer?.reason }));
  };
  const end = (): void => {
    clearTimeout(timer);
    outer?.removeEventListener('abort', interrupt);
  };
  outer?.addEventListener('abort', interrupt, { once: true });
  if (outer?.aborted) interrupt();
  return { signal: controller.signal, end };
}
