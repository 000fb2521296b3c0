// The stages of the gate and of `npm run verify` (scripts/verify): their times add up, their mutations exist, wrong arguments are
// rejected, and several runs for one commit become one table.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { projectRoot } from '../../kit/sources/source-files.js';

interface Stage {
  readonly name: string;
  readonly shareMinutes: number;
  readonly commands: readonly (readonly string[])[];
}

interface StageTable {
  readonly gateStages: readonly Stage[];
  readonly verifyStages: readonly Stage[];
  readonly gateMutations: readonly string[];
  readonly gateLimitMinutes: number;
}

interface StageResult {
  readonly commit: string;
  readonly stage: string;
  readonly seconds: number;
  readonly endedAt: string;
  readonly node: string;
  readonly failure?: string;
}

interface ResultsFile {
  addResult(path: string, result: StageResult): void;
  readResults(path: string, commit: string): ReadonlyMap<string, StageResult>;
  drawResults(names: readonly string[], results: ReadonlyMap<string, StageResult>): string;
}

const load = (name: string): Promise<unknown> => import(join(projectRoot, 'scripts/verify', name));
const table = (await load('stages.js')) as StageTable;
const { addResult, drawResults, readResults } = (await load('results-file.js')) as ResultsFile;
const textOf = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');

/** @returns a result of the stage `test` with the members of `change` */
function result(change: Partial<StageResult>): StageResult {
  const usual = { commit: 'a'.repeat(40), stage: 'test', seconds: 90 };
  return { ...usual, endedAt: '2026-11-28T04:00:00.000Z', node: 'v20.20.2', ...change };
}

describe('the stages of the gate', () => {
  const { gateStages, gateMutations, gateLimitMinutes } = table;

  it('have shares of twenty minutes in all, half of the whole limit', () => {
    const minutes = gateStages.reduce((sum, { shareMinutes }) => sum + shareMinutes, 0);
    assert.ok(minutes <= 20 && gateLimitMinutes === 40, String(minutes));
  });

  it('run the test command of the README', () => {
    assert.match(textOf('README.md'), /^npm ci && npm test$/m);
    assert.ok(gateStages.some(({ commands }) => commands.some((argv) => argv.join(' ') === 'npm test')));
  });

  it('make one change of the sources in each of ten areas', async () => {
    const { readMutations } = (await import(join(projectRoot, 'scripts/mutations-file.js'))) as {
      readonly readMutations: (root: string) => { readonly id: string; readonly file: string }[];
    };
    const all = readMutations(projectRoot);
    const files = gateMutations.map((id) => all.find((one) => one.id === id)?.file ?? `no ${id}`);
    const areas = new Set(files.map((file) => file.split('/').slice(1, 3).join('/')));
    assert.ok(areas.size === 10 && files.length === 10, files.join());
    assert.ok(
      files.every((file) => existsSync(join(projectRoot, file))),
      files.join(),
    );
  });
});

describe('npm run verify', () => {
  const verify = (...args: readonly string[]) =>
    spawnSync(process.execPath, ['scripts/verify/verify.js', ...args], {
      cwd: projectRoot,
      encoding: 'utf8',
    });

  it('has stages of less than an hour, each under a name of its own', () => {
    const names = table.verifyStages.map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
    for (const { name, shareMinutes } of table.verifyStages) assert.ok(shareMinutes < 60, name);
  });

  it('lists every stage, and every part of one that has parts', () => {
    const { status, stdout } = verify('--list');
    assert.equal(status, 0);
    for (const { name } of table.verifyStages) assert.match(stdout, new RegExp(`^${name} `, 'm'));
    assert.match(stdout, /^mutations 3\/6 /m);
  });

  it('exits 2 for an unknown stage, part or flag, and names the command that lists the stages', () => {
    const { status, stderr } = verify('trust');
    assert.equal(status, 2);
    assert.match(stderr, /^there is no stage trust; .* --list/);
    assert.equal(verify('truth', '--part', '1/6').status, 2);
    assert.equal(verify('--parts', '1/6').status, 2);
  });
});

describe('the results of npm run verify', () => {
  it('are the newest of each stage for one commit, and a failed stage is named with its command', () => {
    using dir = tempDir();
    const path = dir.join('.verify/results.ndjson');
    assert.equal(readResults(path, 'a'.repeat(40)).size, 0);
    addResult(path, result({ failure: 'npm test: exit 1' }));
    addResult(path, result({ seconds: 300 }));
    addResult(path, result({ stage: 'truth', failure: 'node truth.js: exit 1' }));
    addResult(path, result({ stage: 'soak', commit: `${'a'.repeat(40)}+changes` }));
    const drawn = drawResults(['test', 'truth', 'soak'], readResults(path, 'a'.repeat(40)));
    assert.deepEqual(drawn.split('\n').slice(2), [
      '| test | passed | 5.0 | 2026-11-28T04:00:00.000Z | v20.20.2 |',
      '| truth | FAILED: node truth.js: exit 1 | 1.5 | 2026-11-28T04:00:00.000Z | v20.20.2 |',
      '| soak | not run | | | |',
    ]);
  });

  it('are read although the last line is incomplete', () => {
    using dir = tempDir();
    const path = dir.join('results.ndjson');
    addResult(path, result({}));
    appendFileSync(path, '{"commit":"aaaa');
    assert.equal(readResults(path, 'a'.repeat(40)).get('test')?.seconds, 90);
  });
});
