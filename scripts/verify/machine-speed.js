// How slow this machine is, beside an idle one with two cores for which the shares of the stages are: two processes repeat a fixed
// piece of work, which takes such a machine half a second.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const work = 'let x = 0; for (let i = 0; i < 1.2e8; i++) x = (x * 31 + i) | 0;';
const usualMs = 500;

/** @returns {Promise<number>} a factor from 1 to 2: a slower machine has no more time than twice that of the usual one */
export async function measureSlowness() {
  const startedMs = performance.now();
  const children = [1, 2].map(() => spawn(process.execPath, ['-e', work], { stdio: 'inherit' }));
  await Promise.all(children.map((child) => once(child, 'exit')));
  return Math.min(Math.max((performance.now() - startedMs) / usualMs, 1), 2);
}
