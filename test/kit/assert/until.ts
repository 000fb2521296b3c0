// Waits for another process or socket by polling; a minute is more than a busy machine needs.
import { setTimeout } from 'node:timers/promises';

/** Checks the condition every 10 ms until it is true. @throws Error after a minute */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 6000; tries += 1) {
    if (await condition()) return;
    await setTimeout(10);
  }
  throw new Error(`waited a minute for ${condition}`);
}
