// A hostile state directory: every entry that a host has created, found on the disk, with every kind of damage. In each case
// every command ends, the intact policy is served and reported, and the damage is repaired, or reported with a remedy.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { availableParallelism } from 'node:os';
import { describe, it } from 'node:test';
import { sampled } from '../../kit/assert/sample.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { damageBench, type Outcome } from './damage-bench.js';
import type { CommandResult } from './state-case.js';
import { damageCases } from './state-harms.js';

/** Files that a link in the state was pointed to. */
const linkTargets = ['/etc/hostname'];

describe('a state directory with any one damaged entry', () => {
  it('hangs no command, keeps every intact release, and is repaired or reported with a remedy', async (test) => {
    using bench = await damageBench(Math.min(availableParallelism(), 4));
    const before = linkTargets.map(describeEntry);
    const outcomes = await bench.run(sampled(bench.cases));
    assert.deepEqual(linkTargets.map(describeEntry), before, 'the target of a link does not change');
    const wrong = outcomes.flatMap((one) => faultsIn(one).map((fault) => `${nameOf(one)}: ${fault}`));
    const mended = outcomes.filter(({ results }) => results.at(-2)?.exitCode === 0).length;
    test.diagnostic(`${outcomes.length} cases, ${mended} of them repaired without an operator`);
    assert.deepEqual(wrong, []);
  });
});

describe('the damages of an entry', () => {
  it('do not change the bytes of a device or a FIFO, because reading or writing would never end', () => {
    using dir = tempDir();
    execFileSync('mkfifo', [dir.join('fifo')]);
    fs.writeFileSync(dir.join('file'), 'x');
    const harmsOf = (path: string): string[] =>
      damageCases(dir.path).flatMap(({ entry, harm }) => (entry.path === path ? [harm] : []));
    assert.ok(harmsOf('fifo').includes('removed'));
    assert.ok(harmsOf('file').includes('a bit turned'));
    const ofFiles = harmsOf('file').filter((harm) => !harmsOf('fifo').includes(harm));
    assert.equal(ofFiles.length, 7, 'every harm of bytes, and no other');
  });
});

function describeEntry(path: string): unknown {
  const { mode, uid, mtimeMs } = fs.statSync(path);
  return { mode, uid, mtimeMs, text: fs.readFileSync(path, 'utf8') };
}

function nameOf({ damage: { entry, harm } }: Outcome): string {
  return `${entry.path || '.'} ${harm}`;
}

function faultsIn(outcome: Outcome): string[] {
  if (outcome.failure !== undefined) return [`did not come to its end: ${outcome.failure}`];
  const { results } = outcome;
  return [...results.flatMap((one) => faultsOf(one, outcome)), ...faultsAtTheEnd(outcome)];
}

const intactContents = ['version 3\n', 'version 4\n'];

function faultsOf({ command, exitCode, text, read }: CommandResult, { damage, path }: Outcome): string[] {
  const isServed = read !== undefined && intactContents.includes(read);
  const isPolicy =
    damage.entry.path === '' || damage.entry.path.startsWith('state/policy') || damage.entry.path === 'state';
  return [
    ...(text.includes('"INTERNAL"') ? [`${command} ends with INTERNAL: ${around(text, '"INTERNAL"')}`] : []),
    ...(exitCode === null ? [`${command} has no exit code`] : []),
    ...(isServed && text.includes('"NOTHING_ACTIVE"') ? [`${command} reports that nothing is active`] : []),
    ...(read === 'version 1\n' ? [`after ${command} a release that was acknowledged is given up`] : []),
    ...(!isServed && !isPolicy ? [`after ${command} a reader finds ${read} in ${path}`] : []),
  ];
}

/** Requires that the newest release is active, or that the last pull names the damaged entry and a remedy. */
function faultsAtTheEnd({ results, path }: Outcome): string[] {
  const pull = results.at(-2);
  if (pull?.exitCode === 0 && pull.read === 'version 4\n') return [];
  const { text = '', exitCode } = pull ?? {};
  const namesRemedy = text.includes(path) && text.includes('"hint"') && !text.includes('kernel log');
  return namesRemedy ? [] : [`the last pull ends with ${exitCode}: ${text.slice(0, 1500)}`];
}

function around(text: string, what: string): string {
  const at = text.indexOf(what);
  return text.slice(Math.max(0, at - 300), at + 500);
}
