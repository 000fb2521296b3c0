// Waits for what another process or socket does, by looking again; fails the test after a minute, which a busy machine
// does not take.
import { setTimeout } from 'node:timers/promises';

/** Checks the condition every 10 ms until it holds. Throws after a minute. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 6000; tries += 1) {
    if (await condition()) return;
    await setTimeout(10);
  }
  throw new Error(`waited a minute for ${condition}`);
}
