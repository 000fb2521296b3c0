// The trees that benchmarks measure on, the same bytes in every run and on every machine: policy-small, policy-10k and its
// second version, policy-huge, and those of the plot of growth. Owns only the trees, not the measurements.
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

export interface TreeSize {
  /** Rule files, dealt out to 100 folders. */
  readonly files: number;
  /** Of a rule file on average, 27 bytes each; from 0.28 to 1.72 times as many. */
  readonly linesPerFile: number;
  /** Of the one response policy zone, 36 bytes each; 0: there is none. */
  readonly zoneLines: number;
}

/** 200 files, 1 MB. */
export const policySmall: TreeSize = { files: 199, linesPerFile: 137, zoneLines: 7_000 };
/** 10,001 files, 73 MB. */
export const policy10k: TreeSize = { files: 10_000, linesPerFile: 137, zoneLines: 1_000_000 };
/** One file of 1 GB. */
export const policyHuge: TreeSize = { files: 0, linesPerFile: 0, zoneLines: 27_800_000 };

const folders = 100;
const zoneName = 'block.rpz';
const linesPerWrite = 10_000;

/** A small generator of its own, so that every machine makes the same tree. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    // The low bits of such a generator repeat soon.
    return state >>> 4;
  };
}

/** Writes the first version below `directory`, which must not exist. */
export function writePolicyTree(directory: string, size: TreeSize): void {
  const next = numbers(42);
  mkdirSync(directory, { recursive: true });
  for (let folder = 0; folder < Math.min(size.files, folders); folder += 1)
    mkdirSync(join(directory, `rules-${folder}`));
  for (let index = 0; index < size.files; index += 1) {
    const count = Math.ceil(0.28 * size.linesPerFile) + (next() % Math.ceil(1.44 * size.linesPerFile));
    const lines = Array.from(
      { length: count },
      () => `allow user-${next() % 9973} on zone-${next() % 997}\n`,
    );
    writeFileSync(join(directory, ruleFile(index)), lines.join(''));
  }
  if (size.zoneLines > 0) writeZone(join(directory, zoneName), size.zoneLines, next);
}

function writeZone(path: string, lines: number, next: () => number): void {
  const zone = openSync(path, 'wx');
  for (let line = 0; line < lines; line += linesPerWrite) {
    const length = Math.min(linesPerWrite, lines - line);
    const chunk = Array.from(
      { length },
      () => `blocked-${next().toString(36).padStart(7, '0')}.example.com CNAME .\n`,
    );
    writeSync(zone, chunk.join(''));
  }
  closeSync(zone);
}

/** Makes the first version the second: a line changed in the middle of the zone, a line more in one rule file. */
export function changeTwoFiles(directory: string, size: TreeSize): void {
  changeRuleFiles(directory, 1);
  const path = join(directory, zoneName);
  const zone = readFileSync(path);
  const middle = zone.indexOf('\n', Math.floor(zone.length / 2)) + 1;
  if (size.zoneLines > 0) zone.write('changed-', middle);
  writeFileSync(path, zone);
}

/** A line more in each of the first `count` rule files. */
export function changeRuleFiles(directory: string, count: number): void {
  for (let index = 0; index < count; index += 1) {
    writeFileSync(join(directory, ruleFile(index)), 'allow user-0 on zone-0\n', { flag: 'a' });
  }
}

function ruleFile(index: number): string {
  return join(`rules-${index % folders}`, `rule-${index}.conf`);
}
