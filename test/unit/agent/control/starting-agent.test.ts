// A state directory with the lock of an agent that does not listen: how an agent that begins is distinguished.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { readStateAccess } from '../../../../src/agent/control/offline-status.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { takeLock } from '../../../../src/platform/disk/process-lock.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('readStateAccess', () => {
  for (const [holder, sinceMs, expected] of [
    ['agent', 1000, 'starting'],
    ['agent', -1000, 'locked'],
    ['pull', 1000, 'locked'],
  ] as const)
    it(`returns '${expected}' with ${holder} since ${sinceMs} ms after status.json`, async () => {
      using dir = tempDir();
      const configPath = dir.join('agent.yaml');
      const state = dir.join('state');
      fs.mkdirSync(state);
      fs.writeFileSync(configPath, `state: ${state}\n`);
      const nowMs = systemClock.nowMs();
      const lock = await takeLock({
        ...{ path: dir.join('state', 'lock'), holder, waitMs: 0, code: 'LOCK_HELD' as const },
        ...{ clock: { ...systemClock, nowMs: () => nowMs }, durable: createDurableFs() },
      });
      assert.equal(await readStateAccess({ configPath, writtenAtMs: nowMs - sinceMs }), expected);
      lock.release();
    });
});
