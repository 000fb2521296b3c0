// `npm run behaviour -- OTHER_CHECKOUT [--record DIR] [--only PART]` runs every scenario with this checkout and the other one,
// and reports each visible difference. Owns the command line and the exit codes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Misuse, openCheckout } from './checkout.js';
import { type ComparisonRun, compareScenario, prepareCommon } from './compare-scenario.js';
import { writeRecordings } from './recording.js';
import { listScenarios, type Scenario } from './scenarios.js';

/** Scenarios at a time. */
const lanes = 2;
const usage = 'usage: npm run behaviour -- OTHER_CHECKOUT [--record DIR] [--only PART-OF-A-NAME]';

interface Order {
  readonly other: string;
  readonly only: string;
  readonly record?: string;
}

interface Tally {
  scenarios: number;
  recordings: number;
  different: number;
}

async function main(): Promise<number> {
  const order = orderOf(process.argv.slice(2));
  const a = openCheckout(join(import.meta.dirname, '..', '..', '..'));
  const b = openCheckout(order.other);
  const scenarios = listScenarios(order.only);
  if (scenarios.length === 0) throw new Misuse(`no scenario matches ${order.only}`);
  const base = mkdtempSync(join(tmpdir(), 'wb-'));
  process.once('exit', () => rmSync(base, { recursive: true, force: true, maxRetries: 3 }));
  const { signal } = endedBySignals();
  const run: ComparisonRun = { a, b, base, signal, startMs: Math.floor(Date.now() / 60_000) * 60_000 };
  await prepareCommon(run);
  const tally = await compareAll(run, scenarios, order.record);
  print(`A is ${a.directory}, B is ${b.directory}`);
  print(`${tally.scenarios} scenarios, ${tally.recordings} recordings, ${tally.different} scenarios differ`);
  return tally.different === 0 ? 0 : 1;
}

/**
 * @returns a controller that a signal aborts, which ends every running scenario before this process exits with the code
 * of the signal
 */
function endedBySignals(): AbortController {
  const controller = new AbortController();
  for (const [name, code] of [
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(name, () => {
      controller.abort();
      process.exit(code);
    });
  }
  return controller;
}

function orderOf(args: readonly string[]): Order {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { record: { type: 'string' }, only: { type: 'string', default: '' } },
    });
    const [other, ...more] = positionals;
    if (other === undefined || more.length > 0) throw new Misuse(usage);
    const { record } = values;
    return { other, only: values.only, ...(record === undefined ? {} : { record }) };
  } catch (cause) {
    throw cause instanceof Misuse ? cause : new Misuse(usage);
  }
}

async function compareAll(
  run: ComparisonRun,
  scenarios: readonly Scenario[],
  record?: string,
): Promise<Tally> {
  const tally: Tally = { scenarios: 0, recordings: 0, different: 0 };
  const waiting = [...scenarios];
  const lane = async (): Promise<void> => {
    for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
      const startMs = performance.now();
      const { a, b, differences } = await compareScenario(run, scenario);
      if (record !== undefined) {
        writeRecordings(join(record, 'a'), scenario.name, a);
        writeRecordings(join(record, 'b'), scenario.name, b);
      }
      tally.scenarios += 1;
      tally.recordings += a.length;
      if (differences.length > 0) tally.different += 1;
      const verdict = differences.length === 0 ? 'same     ' : 'DIFFERENT';
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
      print(`${verdict} ${scenario.name}: ${a.length} recordings, ${seconds} s`);
      for (const line of differences) print(line);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return tally;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(error instanceof Misuse ? 2 : 1);
  },
);
