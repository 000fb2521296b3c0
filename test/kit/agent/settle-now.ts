// Reconciles workers between cycles as the agent's timer does, without a backoff.
import { newCycleId, notificationIds } from '../../../src/agent/job/progress.js';
import { openStagingArea } from '../../../src/agent/job/staging-area.js';
import type { ReconcileOptions } from '../../../src/agent/notify/notify-context.js';
import { type ReconcileResult, reconcileWorkers } from '../../../src/agent/notify/reconcile.js';
import type { Host } from '../../../src/agent/state/host.js';

/** @param more options that replace the defaults of this reconcile */
export async function settleNow(host: Host, more: Partial<ReconcileOptions> = {}): Promise<ReconcileResult> {
  const cycle = newCycleId();
  const area = openStagingArea(host.paths, host.durable, cycle);
  const { signal } = new AbortController();
  try {
    const staging = (): string => area.path();
    return await reconcileWorkers(host, {
      staging,
      signal,
      nextNotificationId: notificationIds(cycle),
      ignoreBackoff: true,
      ...more,
    });
  } finally {
    area.remove(host.log);
  }
}

/** Reconciles workers with their backoff, and finds replaced processes. */
export function settleInTurn(host: Host): Promise<ReconcileResult> {
  return settleNow(host, { ignoreBackoff: false, livenessCheck: 'all' });
}
