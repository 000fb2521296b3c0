// `npm run crash:disk` cuts the power of real file systems in loop images, at every labelled operation of a cycle, with and
// without an unrelated process that flushes a file of its own before the cut. Needs root. Prints counts for each file system.
// Exits with 1 when a cut breaks the invariant, or when cuts without flushes break nothing. Arguments: `short` for a few
// moments, or names of file systems.
import * as fs from 'node:fs';
import { type ReplayCycle, replayCycles } from '../replay/replay-cycles.js';
import { type FileSystem, knownFileSystems, unmountBelow } from './loop-volume.js';
import { acknowledgedOp } from './power-cut-child.js';
import {
  type CutHost,
  differentCuts,
  type JudgedCut,
  judgeCut,
  prepareHostOn,
  type ReplacedBoot,
  replaceBoot,
  runWithCuts,
} from './power-cuts.js';

/** The only directory for images and mounts. */
const base = '/tmp/kills';
const wantedCycles = ['first start', 'update', 'rollback'];

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

interface Totals {
  cuts: number;
  judged: number;
  violations: number;
}

interface Extent {
  readonly length: 'short' | 'full';
  readonly place: string;
  readonly boot: ReplacedBoot;
}

/** Selects cuts around the swap and the acknowledgement, where an update can be lost. */
function selectCuts(cuts: readonly JudgedCut[]): JudgedCut[] {
  const swap = cuts.findIndex(({ allowed }) => allowed.length > 1);
  const wanted = new Set([swap - 1, swap, swap + 1, cuts.length - 1]);
  return cuts.filter((_, at) => wanted.has(at));
}

async function judgeAll(host: CutHost, cuts: readonly JudgedCut[], title: string): Promise<number> {
  let violations = 0;
  for (const cut of cuts) {
    const wrong = await judgeCut(host, cut);
    if (wrong === undefined) continue;
    violations += 1;
    print(`    violated (${title}) behind ${cut.op} ${cut.path}: ${wrong.slice(0, 600)}`);
  }
  return violations;
}

async function reportOne(host: CutHost, { length }: Extent, totals: Totals): Promise<void> {
  for (const foreign of ['none', 'each'] as const) {
    const { cuts, durationMs } = runWithCuts(host, { foreign, flushes: 'kept' });
    const different = differentCuts(cuts);
    const judged = length === 'short' ? selectCuts(different) : different;
    const title =
      foreign === 'none' ? 'no other process flushes' : 'another process flushes before every cut';
    const violations = await judgeAll(host, judged, title);
    note(totals, { cuts: cuts.length, judged: judged.length, violations });
    const took = `${(durationMs / 1000).toFixed(1)} s`;
    print(`  ${host.cycle.name}, ${title}: ${cuts.length} cuts in ${took}, ${violations} violations`);
    print(`    ${different.length} of them differ, ${judged.length} judged`);
    if (foreign === 'none' && length === 'full') await reportOnce(host, cuts, totals);
  }
}

/** One flush of an unrelated process just before the cut: every earlier rename becomes durable, and no content does. */
async function reportOnce(host: CutHost, cuts: readonly JudgedCut[], totals: Totals): Promise<void> {
  const swap = cuts.findIndex(({ allowed }) => allowed.length > 1);
  const near = (index: number): boolean => Math.abs(index - swap) <= 3 || index % 16 === 0;
  let violations = 0;
  let tried = 0;
  for (const { index } of cuts.filter((one) => near(one.index) || one.op === acknowledgedOp)) {
    const cut = runWithCuts(host, { foreign: index, flushes: 'kept' }).cuts[index];
    if (cut === undefined) continue;
    tried += 1;
    violations += await judgeAll(host, [cut], 'another process flushes once');
  }
  note(totals, { cuts: tried, judged: tried, violations });
  print(
    `  ${host.cycle.name}, another process flushes once, before the cut: ${tried} cuts, ${violations} violations`,
  );
}

function note(totals: Totals, more: Totals): void {
  totals.cuts += more.cuts;
  totals.judged += more.judged;
  totals.violations += more.violations;
}

/** Cuts without any flush of Writ: they must find violations, otherwise the method could find none at all. */
async function reportWithoutFlushes(host: CutHost): Promise<boolean> {
  const lost = runWithCuts(host, { foreign: 'none', flushes: 'skipped' }).cuts.at(-1);
  const isLost = lost !== undefined && (await judgeCut(host, lost))?.includes("'old' is active") === true;
  print(
    `  without flushes: the acknowledged update is ${isLost ? 'lost' : 'KEPT: the method finds nothing'}`,
  );
  const once = runWithCuts(host, { foreign: 'none', flushes: 'skipped' }).cuts.length - 1;
  const torn = runWithCuts(host, { foreign: once, flushes: 'skipped' }).cuts[once];
  const wrong = torn === undefined ? undefined : await judgeCut(host, torn);
  const isTorn = wrong?.includes('is no whole policy') === true;
  print(
    `  without flushes of Writ, another process flushes: ${isTorn ? 'the new policy is not intact' : wrong}`,
  );
  return isLost && (isTorn || host.kind !== 'ext4');
}

function cycleOf(name: string): ReplayCycle {
  const found = replayCycles.find((one) => one.name === name);
  if (found === undefined) throw new RangeError(`no cycle is called ${name}`);
  return found;
}

async function reportFileSystem(kind: FileSystem, extent: Extent): Promise<boolean> {
  print(`${kind}:`);
  const totals: Totals = { cuts: 0, judged: 0, violations: 0 };
  let finds = true;
  for (const name of wantedCycles) {
    const place = fs.mkdtempSync(`${extent.place}/${kind}-`);
    const host = await prepareHostOn(kind, cycleOf(name), { place, boot: extent.boot });
    await reportOne(host, extent, totals);
    if (name === 'update') finds = await reportWithoutFlushes(host);
    fs.rmSync(place, { recursive: true, force: true });
  }
  print(`  ${kind} in all: ${totals.cuts} cuts, ${totals.judged} judged, ${totals.violations} violations`);
  return totals.violations === 0 && finds;
}

async function main(args: readonly string[]): Promise<number> {
  fs.mkdirSync(base, { recursive: true });
  const place = fs.realpathSync(fs.mkdtempSync(`${base}/disk-`));
  const clean = (): void => {
    unmountBelow(place);
    fs.rmSync(place, { recursive: true, force: true });
  };
  // The mounts end with the namespace, which ends with this process. Ctrl-C ends the child too.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  process.once('exit', clean);
  const { usable, missing } = knownFileSystems(place);
  for (const one of missing) print(`skipped: ${one}`);
  const length = args.includes('short') ? 'short' : 'full';
  const named = args.filter((one) => one !== 'short');
  const wanted = length === 'short' ? ['ext4'] : named.length > 0 ? named : usable;
  // Where no image can be mounted, the boot id cannot be replaced either.
  const boot = usable.length > 0 ? replaceBoot(place) : { next: () => undefined };
  let ok = true;
  let tried = 0;
  for (const kind of usable.filter((one) => wanted.includes(one))) {
    tried += 1;
    if (!(await reportFileSystem(kind, { length, place, boot }))) ok = false;
  }
  if (tried === 0)
    print('skipped: no file system can be made and mounted here; it needs root and loop devices');
  return ok ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
