// What follows a cycle in which the files of this host and a delta did not make what was signed: a look over everything that the
// host relies on, now, for the base may be the active generation still or the one behind it. Never changes what the cycle said.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { isWritError } from '../../core/errors.js';
import { repairNow } from '../select/pause.js';
import { type VerifyOptions, verifyPolicy } from './verify-policy.js';

/** @param result of a cycle. Never rejects, for nobody may be waiting: the log says it, and the next scrub looks again */
export async function lookAfterMismatch(
  { warnings }: Pick<CycleResult, 'warnings'>,
  options: Omit<VerifyOptions, 'repair' | 'by' | 'onEvent'>,
): Promise<void> {
  if (!warnings.some(({ code }) => code === 'DELTA_MISMATCH')) return;
  const host = options.host();
  try {
    const repair = repairNow(host);
    const { outcome } = await verifyPolicy({ ...options, repair, by: 'writ', onEvent: () => undefined });
    host.log.warn({ outcome }, 'scanned the policy on disk, because a delta did not match it');
  } catch (error) {
    if (isWritError(error) && error.code === 'INTERRUPTED') return;
    host.log.error({ err: error }, 'the policy on disk could not be scanned');
  }
}
