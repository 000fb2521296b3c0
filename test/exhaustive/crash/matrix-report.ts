// `npm run crash` runs the complete matrix: every fault at every operation of every cycle. Prints one line a cycle; exits with
// 1 when a state breaks the invariant. An argument is part of a cycle's name.
import { seeded, testSeed } from '../../kit/assert/seeded.js';
import { matrixCycles } from './matrix-cycles.js';
import { completePlan } from './matrix-plan.js';
import { type MatrixViolation, openPool } from './matrix-pool.js';

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

const widths = [52, 10, 9, 9, 10, 7] as const;

function row(cells: readonly (string | number)[]): string {
  return cells
    .map((cell, index) => {
      const width = widths[index] ?? 0;
      return index === 0 ? String(cell).padEnd(width) : String(cell).padStart(width);
    })
    .join(' ');
}

async function main(wanted: string): Promise<number> {
  const cycles = matrixCycles.filter(({ name }) => name.includes(wanted));
  const violations: MatrixViolation[] = [];
  const total = { operations: 0, tried: 0, seconds: 0 };
  print(row(['cycle', 'operations', 'states', 'survived', 'violations', 'seconds']));
  const pool = openPool();
  try {
    await pool.each(cycles, async ({ name }, order) => {
      const { moments } = await order([]);
      const plan = completePlan(moments, seeded(testSeed()));
      const { violations: found, durationMs } = await order(plan);
      violations.push(...found);
      const seconds = Math.round(durationMs / 1000);
      total.operations += moments.length;
      total.tried += plan.length;
      total.seconds += seconds;
      print(row([name, moments.length, plan.length, plan.length - found.length, found.length, seconds]));
      for (const { state, message } of found) print(`    ${state}\n      ${message.split('\n')[0]}`);
    });
  } finally {
    await pool.close();
  }
  const survived = total.tried - violations.length;
  print(row(['all', total.operations, total.tried, survived, violations.length, total.seconds]));
  return violations.length;
}

process.exitCode = (await main(process.argv[2] ?? '')) === 0 ? 0 : 1;
