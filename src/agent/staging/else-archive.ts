// What becomes of a way that leads nowhere: the archive of the same release is taken, which alone decides about it, and the cycle
// says so. Nothing is remembered against a release for its deltas.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import type { ErrorCode } from '../../core/errors.js';
import { toWritError, WritError } from '../../core/errors.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';

/** Of this host, or asked for: the archive would end the same way. */
const notTheWays: ReadonlySet<ErrorCode> = new Set([
  'INTERRUPTED',
  'DISK_FULL',
  'DISK_QUOTA',
  'DISK_READ_ONLY',
  'DISK_DENIED',
  'TOO_MANY_FILES',
]);

/**
 * @param warnings gets a word of a way that led nowhere
 * @throws what the way throws where no archive can help, and what the archive's throws
 */
export async function elseArchive<T>(
  { host, target, warnings }: { host: Pick<Host, 'log'>; target: SignedTarget; warnings: Problem[] },
  way: () => Promise<T>,
  archive: () => Promise<T>,
): Promise<T> {
  try {
    return await way();
  } catch (thrown) {
    const cause = toWritError(thrown);
    if (notTheWays.has(cause.code)) throw cause;
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
