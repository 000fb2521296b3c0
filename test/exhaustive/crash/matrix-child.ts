// A child process of the crash matrix: prepares the cycles that it receives, and runs cases on them.
import { caseName, type PreparedCycle, prepareCycle } from './matrix-case.js';
import { matrixCycles } from './matrix-cycles.js';
import { openDisks } from './matrix-disks.js';
import type { MatrixAnswer, MatrixOrder, MatrixViolation } from './matrix-pool.js';

const disks = openDisks();
const prepared = new Map<string, PreparedCycle>();

async function prepare(name: string): Promise<PreparedCycle> {
  const known = prepared.get(name);
  if (known !== undefined) return known;
  const cycle = matrixCycles.find((one) => one.name === name);
  if (cycle === undefined) throw new Error(`there is no cycle '${name}'`);
  const made = await prepareCycle(cycle, disks);
  prepared.set(name, made);
  return made;
}

async function answer({ cycle: name, cases }: MatrixOrder): Promise<MatrixAnswer> {
  const startedMs = Date.now();
  const cycle = await prepare(name);
  const violations: MatrixViolation[] = [];
  for (const one of cases) {
    try {
      await cycle.run(one);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      violations.push({ cycle: name, state: caseName(one), message: message.slice(0, 2000) });
    }
  }
  return { moments: cycle.moments, violations, durationMs: Date.now() - startedMs };
}

process.on('message', (order: MatrixOrder) => {
  answer(order).then(
    (value) => process.send?.(value),
    (error: unknown) => process.send?.({ failure: error instanceof Error ? error.stack : String(error) }),
  );
});

process.on('disconnect', () => {
  for (const one of prepared.values()) one[Symbol.dispose]();
  disks[Symbol.dispose]();
  process.exit(0);
});
