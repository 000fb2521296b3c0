// Two soaks of some seconds with the processes, faults and readers of the long one: one with a known seed, one with a new seed
// that the output shows. `npm run soak` runs the long one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { sampleSize } from '../../kit/assert/sample.js';

const program = join(import.meta.dirname, 'soak.js');
const fixedSeed = '20261121';

interface SoakEnd {
  readonly exitCode: number | null;
  readonly output: string;
}

function runSoak(args: readonly string[]): Promise<SoakEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    child.once('error', reject);
    child.once('close', (exitCode) => resolve({ exitCode, output }));
  });
}

function counted({ output }: SoakEnd, name: string): number {
  return Number(new RegExp(`^ {2}${name} +([0-9]+)$`, 'm').exec(output)?.[1] ?? 0);
}

describe('a soak of some seconds', () => {
  it('finds no violation with a known seed and with a new seed', async (test) => {
    const common = ['--minutes', '0.2', '--hosts', '1'];
    const runs = [[...common, '--seed', fixedSeed], common].slice(0, sampleSize());
    const ends = await Promise.all(runs.map(runSoak));
    for (const end of ends) {
      test.diagnostic(/^seed .*$/m.exec(end.output)?.[0] ?? 'no seed');
      assert.equal(end.exitCode, 0, end.output);
      assert.equal(counted(end, 'violations'), 0);
      for (const name of ['actions', 'reads', 'pulls']) assert.ok(counted(end, name) > 0, end.output);
    }
  });

  it('prints its usage and exits with 2 on an invalid option', async () => {
    const end = await runSoak(['--minutes', 'long']);
    assert.equal(end.exitCode, 2);
    assert.match(end.output, /npm run soak/);
  });
});
