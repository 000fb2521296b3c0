// The state directory as an enemy: every entry that a host has made, found on the disk, in every way in which it may be
// harmed. Whatever it is, each command comes to its end, the policy that is whole is served and said to be, and it is mended
// or named with a way out.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { availableParallelism } from 'node:os';
import { describe, it } from 'node:test';
import { sampled } from '../../kit/assert/sample.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { damageBench, type Outcome } from './damage-bench.js';
import type { Said } from './state-case.js';
import { damageCases } from './state-harms.js';

/** Files that a link in the state was made to lead to. */
const strangers = ['/etc/hostname'];

describe('a state directory of which any one entry is harmed', () => {
  it('hangs nobody, gives no whole release up, and is mended or names its way out', async (test) => {
    using bench = await damageBench(Math.min(availableParallelism(), 4));
    const before = strangers.map(lookOf);
    const outcomes = await bench.run(sampled(bench.cases));
    assert.deepEqual(strangers.map(lookOf), before, 'what a link leads to is nobody’s to change');
    const wrong = outcomes.flatMap((one) => faultsIn(one).map((fault) => `${nameOf(one)}: ${fault}`));
    const mended = outcomes.filter(({ said }) => said.at(-2)?.exitCode === 0).length;
    test.diagnostic(`${outcomes.length} cases, ${mended} of them mended without a hand`);
    assert.deepEqual(wrong, []);
  });
});

describe('the harms of an entry', () => {
  it('leave the bytes of a device and a FIFO alone, where reading and writing would never end', () => {
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

function lookOf(path: string): unknown {
  const { mode, uid, mtimeMs } = fs.statSync(path);
  return { mode, uid, mtimeMs, text: fs.readFileSync(path, 'utf8') };
}

function nameOf({ damage: { entry, harm } }: Outcome): string {
  return `${entry.path || '.'} ${harm}`;
}

function faultsIn(outcome: Outcome): string[] {
  if (outcome.failure !== undefined) return [`did not come to its end: ${outcome.failure}`];
  const { said } = outcome;
  return [...said.flatMap((one) => faultsOf(one, outcome)), ...faultsAtTheEnd(outcome)];
}

const whole = ['version 3\n', 'version 4\n'];

function faultsOf({ command, exitCode, text, read }: Said, { damage, path }: Outcome): string[] {
  const isServed = read !== undefined && whole.includes(read);
  const isPolicy =
    damage.entry.path === '' || damage.entry.path.startsWith('state/policy') || damage.entry.path === 'state';
  return [
    ...(text.includes('"INTERNAL"') ? [`${command} ends with INTERNAL: ${around(text, '"INTERNAL"')}`] : []),
    ...(exitCode === null ? [`${command} has no exit code`] : []),
    ...(isServed && text.includes('"NOTHING_ACTIVE"') ? [`${command} says that nothing is active`] : []),
    ...(read === 'version 1\n' ? [`after ${command} a release that was acknowledged is given up`] : []),
    ...(!isServed && !isPolicy ? [`after ${command} a reader finds ${read} in ${path}`] : []),
  ];
}

/** The newest release is active, or the last pull names what is in its way, and how that ends. */
function faultsAtTheEnd({ said, path }: Outcome): string[] {
  const pull = said.at(-2);
  if (pull?.exitCode === 0 && pull.read === 'version 4\n') return [];
  const { text = '', exitCode } = pull ?? {};
  const hasWayOut = text.includes(path) && text.includes('"hint"') && !text.includes('kernel log');
  return hasWayOut ? [] : [`the last pull ends with ${exitCode}: ${text.slice(0, 1500)}`];
}

function around(text: string, what: string): string {
  const at = text.indexOf(what);
  return text.slice(Math.max(0, at - 300), at + 500);
}
