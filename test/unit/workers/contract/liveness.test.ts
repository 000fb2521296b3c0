import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Liveness } from '../../../../src/workers/contract/driver.js';
import { livenessWithin } from '../../../../src/workers/contract/liveness.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

async function look(
  ...seen: readonly Liveness[]
): Promise<{ liveness: Liveness; sleeps: readonly number[] }> {
  const clock = fakeClock({ mode: 'skip' });
  const left = [...seen];
  const next = async (): Promise<Liveness> => left.shift() ?? 'dead';
  return { liveness: await livenessWithin({ clock, graceMs: 100 }, next), sleeps: clock.sleeps };
}

describe('whether a worker lives that may be away for a moment', () => {
  it('is said at once where it is seen, or nobody can see', async () => {
    assert.deepEqual(await look('alive'), { liveness: 'alive', sleeps: [] });
    assert.deepEqual(await look('unknown'), { liveness: 'unknown', sleeps: [] });
  });

  it('is looked at again until it is back', async () => {
    assert.deepEqual(await look('dead', 'alive'), { liveness: 'alive', sleeps: [50] });
  });

  it('is no longer waited for at the end of the grace', async () => {
    assert.deepEqual(await look(), { liveness: 'dead', sleeps: [50, 50] });
  });
});
