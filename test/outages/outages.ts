// `npm run outages` replays each outage on its own host, several at a time, and prints a table. Owns arguments, progress on
// stderr, and the exit code. `rows` has the outages and their expected results.
import { tempDir } from '../kit/disk/temp-dir.js';
import { outages } from './rows/all.js';
import { readArguments } from './rules/arguments.js';
import { drawTable, exitCodeOf, type Row, rowsAsJson } from './rules/table.js';
import type { Outage } from './stage/outage.js';

/** Rows at a time; a row mostly waits. */
const atOnce = 3;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1));
process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const wanted = readArguments(
    args,
    outages.map(({ name }) => name),
  );
  if ('help' in wanted) return print(wanted.help, 0);
  if ('mistake' in wanted) {
    progress(wanted.mistake);
    return 2;
  }
  const rows = await replayAll(outages.filter(({ name }) => wanted.names.includes(name)));
  const mustRun = process.env['WRIT_TEST_REQUIRE_REAL'] === '1';
  const exitCode = exitCodeOf(rows, { mustRun });
  return print(wanted.isJson ? rowsAsJson(rows, exitCode) : drawTable(rows), exitCode);
}

function print(text: string, exitCode: number): number {
  process.stdout.write(text);
  return exitCode;
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** @returns the rows in the order of the outages */
async function replayAll(all: readonly Outage[]): Promise<Row[]> {
  const rows = new Map<string, Row>();
  const left = [...all];
  const work = async (): Promise<void> => {
    for (let outage = left.shift(); outage !== undefined; outage = left.shift())
      rows.set(outage.name, await replayOne(outage));
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return all.flatMap(({ name }) => rows.get(name) ?? []);
}

async function replayOne(outage: Outage): Promise<Row> {
  const skipped = outage.missing();
  const report = (line: string): void => progress(`${outage.name}: ${line}`);
  if (skipped !== undefined) {
    report(`skipped: ${skipped}`);
    return { outage, replayed: { skipped } };
  }
  using dir = tempDir();
  report('begins');
  try {
    const replayed = await outage.replay({ dir, report });
    report(
      replayed.complaints.length === 0 ? 'ended as expected' : `NOT AS EXPECTED: ${replayed.complaints}`,
    );
    return { outage, replayed };
  } catch (error) {
    const complaint = `could not be replayed: ${error instanceof Error ? error.message : String(error)}`;
    report(complaint);
    const nothing = { happened: [], awaySeconds: undefined, serves: 'unknown' };
    return { outage, replayed: { ...nothing, complaints: [complaint] } };
  }
}
