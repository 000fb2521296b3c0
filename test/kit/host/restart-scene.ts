// A host with workers and a bundle of rules and a configuration, for tests of restarts.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import type { LivingDriver } from '../workers/living-workers.js';
import { type TestHost, testHost } from './test-host.js';

export const current = (test: TestHost): string => fs.readlinkSync(test.host.paths.current);
export const files = (rules: number, conf: number) => ({ 'rules/a': `${rules}`, 'worker.conf': `${conf}` });
const byConfig = { when: ['rules/**'], restartWhen: ['worker.conf'] };

export interface Scene {
  readonly test: TestHost;
  readonly driver: LivingDriver;
  /** Publishes the next release with these versions and pulls. @returns the result and the notified workers */
  next(
    rules: number,
    conf: number,
  ): Promise<{ exitCode: number; code: string | undefined; notified: string[] }>;
}

/** @returns a host with an active first release */
export async function scene(
  driver: LivingDriver,
  config: Partial<WorkerGroupConfig> = byConfig,
): Promise<Scene> {
  const test = testHost({ groups: { app: { driver, config } } });
  let serial = 1;
  await test.publish('access', files(1, 1), { serial });
  assert.equal((await test.pull()).exitCode, 0);
  return {
    test,
    driver,
    next: async (rules, conf) => {
      serial += 1;
      driver.notified.length = 0;
      await test.publish('access', files(rules, conf), { serial });
      const { exitCode, problems } = await test.pull();
      return { exitCode, code: problems[0]?.code, notified: [...driver.notified] };
    },
  };
}
