// The fallback for a failed fetch strategy: fetches the archive of the same release and reports a warning. Only the archive
// decides about the release, because a wrong delta is not a verdict on it.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import type { ErrorCode } from '../../core/errors.js';
import { toWritError, WritError } from '../../core/errors.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';

/** Failures of this host, and interruptions: the archive would fail in the same way. */
const finalCodes: ReadonlySet<ErrorCode> = new Set([
  'INTERRUPTED',
  'DISK_FULL',
  'DISK_QUOTA',
  'DISK_READ_ONLY',
  'DISK_DENIED',
  'TOO_MANY_FILES',
]);

/**
 * Runs the chosen fetch strategy, and if it fails the fetch of the archive.
 * @param attempt runs the chosen strategy
 * @param archive is called only after a failure of `attempt`, once
 * @returns the result of `attempt`, or of `archive`. In the second case `warnings` gets one problem: DELTA_MISMATCH if `attempt`
 *   failed with this code, otherwise DELTA_FAILED. It is also logged
 * @throws the error of `attempt`, without a warning, for INTERRUPTED, DISK_FULL, DISK_QUOTA, DISK_READ_ONLY, DISK_DENIED and
 *   TOO_MANY_FILES; otherwise the error of `archive`
 */
export async function withArchiveFallback<T>(
  { host, target, warnings }: { host: Pick<Host, 'log'>; target: SignedTarget; warnings: Problem[] },
  attempt: () => Promise<T>,
  archive: () => Promise<T>,
): Promise<T> {
  try {
    return await attempt();
  } catch (thrown) {
    const cause = toWritError(thrown);
    if (finalCodes.has(cause.code)) throw cause;
    const { bundle, serial } = target.release;
    const code = cause.code === 'DELTA_MISMATCH' ? 'DELTA_MISMATCH' : 'DELTA_FAILED';
    const warning = new WritError(code, `${bundle} ${serial} is fetched as an archive: ${cause.message}`, {
      facts: { bundle, serial, because: cause.code },
      cause,
    });
    host.log.warn({ err: warning }, 'a delta could not be applied');
    warnings.push(problemOf(warning));
    return archive();
  }
}
