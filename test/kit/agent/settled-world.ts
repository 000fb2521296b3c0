// A host with an active first version of which all workers were notified, and a reconcile between cycles.
import { notificationIds } from '../../../src/agent/job/progress.js';
import { openStagingArea } from '../../../src/agent/job/staging-area.js';
import type { ReconcileOptions } from '../../../src/agent/notify/notify-context.js';
import { type ReconcileResult, reconcileWorkers } from '../../../src/agent/notify/reconcile.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import { type TestHost, testHost } from '../host/test-host.js';
import { type ScriptedDriver, scriptedDriver } from '../workers/scripted-driver.js';

let cycles = 0;

/**
 * Reconciles the workers once without a backoff.
 * @param more options that replace the defaults of this reconcile
 */
export async function settle(host: Host, more: Partial<ReconcileOptions> = {}): Promise<ReconcileResult> {
  cycles += 1;
  const cycle = `c-${cycles}`;
  const area = openStagingArea(host.paths, host.durable, cycle);
  const staging = (): string => area.path();
  const { signal } = new AbortController();
  try {
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

export const entryOf = (test: TestHost, key: string) => test.host.ledger.read().workers[key];
export const codes = ({ problems }: ReconcileResult): string[] => problems.map((one) => one.code);

export interface World {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
}

/**
 * Version 1 is active on a host with one group, `app`. 20 s have passed since, and `driver.notified` is empty.
 * @param workers all workers of the group, by name, with the reply of each to a notification
 */
export async function settledWorld(
  workers: Parameters<typeof scriptedDriver>[0],
  config: Partial<WorkerGroupConfig> = {},
): Promise<World> {
  const driver = scriptedDriver(workers);
  for (const name of Object.keys(workers)) driver.processes.set(name, `first-${name}`);
  const test = testHost({ groups: { app: { driver, config } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  driver.notified.length = 0;
  // After 20 s a different process was not started by that notification.
  await test.clock.advance(20_000);
  return { test, driver };
}

export const probe = (script: string): Partial<WorkerGroupConfig> => ({
  probe: { run: ['sh', '-c', script], timeoutMs: 60_000, retry: 0 },
});
