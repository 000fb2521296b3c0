// Scans the active generation and the backups at once after a cycle in which a delta and its base release did not produce the signed
// files, because the damaged base may be one of them. Does not change the result of the cycle.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { isWritError } from '../../core/errors.js';
import { repairNow } from '../select/pause.js';
import { type VerifyOptions, verifyPolicy } from './verify-policy.js';

/**
 * Does nothing without a warning DELTA_MISMATCH. Never rejects, because a caller may not wait for it: a failure is logged, and the next
 * scrub scans again.
 */
export async function scrubAfterMismatch(
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
