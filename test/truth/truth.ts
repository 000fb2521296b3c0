// `npm run truth` runs cells of daemon and case with the real daemons, compares Writ's report with what they serve, and either
// writes docs/truth.md (`--all`, or some with `--record`) or compares with it. Owns arguments, order and exit code.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { defaultPath } from '../../src/platform/process/run-command.js';
import { projectRoot } from '../kit/sources/source-files.js';
import { always, cases, slow } from './cases/cases.js';
import { daemons } from './daemons/all.js';
import type { Daemon } from './parts/daemon.js';
import { keepBusy, killAll } from './parts/processes.js';
import { caseOf, choose } from './rules/choose.js';
import type { Pace } from './rules/pace.js';
import {
  type Cell,
  cellName,
  complaints,
  drawBusy,
  drawDetails,
  drawTable,
  merged,
  type Recorded,
  readDetails,
  readTable,
  withPart,
} from './rules/page.js';
import { makeStock, newPlace, type RunOptions, runCell } from './stage/run-cell.js';

/** Cells at a time; a cell mostly waits for a daemon. */
const atOnce = 4;
const page = join(projectRoot, 'docs/truth.md');
const print = (line: string): void => void process.stdout.write(`${line}\n`);
// A reader that closes early (`npm run truth | head`) ends the run; daemons end with this process.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const { values: flags, positionals: named } = parseArgs({
  options: {
    ...{ all: { type: 'boolean' }, record: { type: 'boolean' }, keep: { type: 'boolean' } },
    ...{ packages: { type: 'boolean' }, busy: { type: 'string' }, whole: { type: 'boolean' } },
  },
  allowPositionals: true,
});
if (flags.packages) print(packages().join('\n'));
else {
  process.on('exit', killAll);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
  process.exitCode = await run();
}

function packages(): readonly string[] {
  // For the sandbox of checks and probes.
  return [...new Set(['bubblewrap', ...daemons.flatMap((one) => one.packages)])].sort();
}

async function run(): Promise<number> {
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: projectRoot, encoding: 'utf8' }).trim();
  const names = daemons.flatMap(({ name }) => cases.map((one) => `${name}:${one.name}`));
  const asked = (['all', 'record', 'whole'] as const).flatMap((one) => (flags[one] ? [`--${one}`] : []));
  const { cells: wanted, shouldRecord } = choose(names, { given: [...named, ...asked], always, commit });
  const missing = daemons.filter(
    (one) => wanted.some((name) => name.startsWith(`${one.name}:`)) && !isHere(one),
  );
  for (const one of missing) print(`${one.name} is not installed: apt-get install ${one.packages.join(' ')}`);
  if (missing.length > 0 && process.env['WRIT_TEST_REQUIRE_REAL'] === '1') return 1;
  const here = wanted.filter((name) => !missing.some((one) => name.startsWith(`${one.name}:`)));
  const recorded = readTable(readFileSync(page, 'utf8'));
  const busy = Number(flags.busy ?? 0);
  if (!Number.isInteger(busy)) throw new Error(`--busy is no number: ${flags.busy}`);
  keepBusy(busy);
  const before = busy > 0 ? 'busy' : shouldRecord ? 'nothing' : recorded;
  const played = await playAll(here, before, flags.all || before === 'nothing' ? 'real' : 'quick');
  if (shouldRecord) {
    if (busy > 0)
      writeParts(page, { busy: drawBusy(played, { recorded, busy, processors: availableParallelism() }) });
    else writePage(merged(readDetails(readFileSync(page, 'utf8')), played, names));
  }
  const wrong = wrongOf(played, before);
  for (const line of wrong) print(`✖ ${line}`);
  print(`${played.length} cells, ${wrong.length} of them wrong`);
  return wrong.length === 0 ? 0 : 1;
}

/** The expected verdicts: the page, nothing for a run that records, or only the rules that always hold. */
type Before = Recorded | 'nothing' | 'busy';

function wrongOf(cells: readonly Cell[], before: Before): readonly string[] {
  const own = new Map(cells.map((cell) => [cellName(cell), cell.verdict]));
  return complaints(cells, typeof before === 'string' ? own : before);
}

function isHere({ programs }: Daemon): boolean {
  const folders = [...defaultPath.split(':'), '/usr/lib/postfix/sbin'];
  return programs.every((program) => folders.some((folder) => existsSync(join(folder, program))));
}

/**
 * Runs a wrong cell a second time, alone, because a busy machine may have been too slow to respond. Reports both
 * results.
 */
async function playAll(names: readonly string[], before: Before, pace: Pace): Promise<readonly Cell[]> {
  const place = newPlace();
  const stock = await makeStock(join(place, 'stock'));
  const played = new Map<string, Cell>();
  // Slow cells first, so that the others run while they wait.
  const isSlow = (name: string): boolean => slow.includes(caseOf(name));
  const left = [...names.filter(isSlow), ...names.filter((name) => !isSlow(name))];
  const work = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      played.set(name, await play(name, { stock, pace }));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  left.push(
    ...names.filter((name) =>
      wrongOf([...played.values()], before).some((one) => one.startsWith(`${name}: `)),
    ),
  );
  if (left.length > 0) print(`again, alone: ${left.join(', ')}`);
  await work();
  rmSync(place, { recursive: true, force: true });
  return names.flatMap((name) => played.get(name) ?? []);
}

async function play(name: string, options: Pick<RunOptions, 'stock' | 'pace'>): Promise<Cell> {
  const daemon = daemons.find((one) => name.startsWith(`${one.name}:`));
  const one = cases.find((candidate) => name === `${daemon?.name}:${candidate.name}`);
  if (daemon === undefined || one === undefined) throw new Error(`there is no cell ${name}`);
  const begunMs = Date.now();
  const keep = flags.keep ? 'all' : 'nothing';
  const cell = await runCell(daemon, one, { root: projectRoot, keep, ...options }).catch(
    (error: unknown): Cell => {
      return { daemon: daemon.name, case: one.name, verdict: '?', text: `could not be played: ${error}` };
    },
  );
  const seconds = ((Date.now() - begunMs) / 1000).toFixed(1);
  print(`${cellName(cell)} ${cell.verdict} (${seconds} s) ${cell.text}`);
  return cell;
}

/** Writes the table of all cells, and its row on each page of a daemon. */
function writePage(cells: readonly Cell[]): void {
  const columns = cases.map(({ name }) => name);
  const what = cases.map((one) => `| ${one.name} | ${one.what} |`);
  const parts: Readonly<Record<string, string>> = {
    cases: ['| case | what happens |', '|---|---|', ...what].join('\n'),
    table: drawTable(cells, columns),
    cells: drawDetails(cells),
  };
  writeParts(page, parts);
  for (const { name } of daemons) {
    const own = join(projectRoot, `docs/daemons/${name}.md`);
    const row = drawTable(
      cells.filter((one) => one.daemon === name),
      columns,
    );
    writeParts(own, { row });
  }
}

function writeParts(path: string, parts: Readonly<Record<string, string>>): void {
  const text = Object.entries(parts).reduce(
    (made, [name, part]) => withPart(made, name, part),
    readFileSync(path, 'utf8'),
  );
  writeFileSync(path, text);
}
