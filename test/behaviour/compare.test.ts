// The comparison reports one changed byte in each kind of recording, and nothing when only time passes. Uses small programs as
// two checkouts, with the real scenario runner.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { longCase } from '../kit/assert/long-case.js';
import { type Checkout, Misuse, openCheckout } from './checkout.js';
import { type ComparisonRun, compareScenario } from './compare-scenario.js';
import { differencesOf } from './difference.js';

let base: string;
before(() => {
  base = mkdtempSync(join(tmpdir(), 'wb-test-'));
});
after(() => rmSync(base, { recursive: true, force: true }));

/** Creates a checkout with this program. */
function checkoutWith(name: string, program: string): Checkout {
  const directory = join(base, name);
  for (const file of ['main.js', 'sdk.js', 'dist/demo/demo.js']) {
    mkdirSync(join(directory, file, '..'), { recursive: true });
    writeFileSync(join(directory, file), program);
  }
  const exports = { './sdk': { default: './sdk.js' } };
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ bin: { writ: 'main.js' }, exports }));
  return openCheckout(directory);
}

const correctProgram = `
const fs = require('node:fs');
fs.writeFileSync('made.json', '{"schema":1}');
console.log('ended at', Date.now(), new Date().toISOString(), 'pid', process.pid, 'in', performance.now().toFixed(1), 's');
console.log(require('node:crypto').randomBytes(32).toString('hex'));
console.error('warning of ' + __dirname);
process.exitCode = 3;
`;
let count = 0;

async function differencesWith(program: string): Promise<string> {
  count += 1;
  const script = join(base, `${count}.sh`);
  writeFileSync(script, 'writ do it\nlook .\n');
  const run: ComparisonRun = {
    a: checkoutWith('a', correctProgram),
    b: checkoutWith('b', program),
    base: join(base, `ground-${count}`),
    signal: new AbortController().signal,
    startMs: Date.parse('2026-03-01T12:00:00Z'),
  };
  mkdirSync(join(run.base, 'common'), { recursive: true });
  const compared = await compareScenario(run, { name: 's', form: 'human', script });
  assert.equal(compared.a.length, 3);
  return compared.differences.join('\n');
}

describe('a comparison', () => {
  it(
    'finds no difference when only time, pids, directories and random bytes of the machine differ',
    longCase,
    async () => {
      assert.equal(await differencesWith(correctProgram), '');
    },
  );

  for (const [what, from, to, seen] of [
    ['a byte of stdout', 'ended at', 'ended  at', /B: ended {2}at/],
    ['a byte of stderr', 'warning of', 'Warning of', /B: Warning of CHECKOUT/],
    ['an exit code', 'exitCode = 3', 'exitCode = 4', /B: 4/],
    ['a byte of a file', '"schema":1', '"schema":2', /B: .*"schema":2/],
    [
      'the mode of a file',
      '\'{"schema":1}\'',
      '\'{"schema":1}\', { mode: 0o600 }',
      /B: file 0600 .\/made.json/,
    ],
    ['how many random bytes make a name', 'randomBytes(32)', 'randomBytes(16)', /\$ writ do it/],
  ] as const) {
    it(`sees ${what}`, async () => {
      assert.ok(correctProgram.includes(from));
      assert.match(await differencesWith(correctProgram.replace(from, to)), seen);
    });
  }

  it('reports an additional command of a scenario', () => {
    const one = { title: '$ writ a', text: '' };
    assert.deepEqual(differencesOf([one], [one, { title: '$ writ b', text: '' }]), [
      '  #2 (nothing)',
      '    B: $ writ b',
    ]);
  });

  it('refuses a directory without a checkout, and a checkout that is not built', () => {
    assert.throws(() => openCheckout(join(base, 'nowhere')), Misuse);
    checkoutWith('unbuilt', correctProgram);
    rmSync(join(base, 'unbuilt', 'main.js'));
    assert.throws(() => openCheckout(join(base, 'unbuilt')), /not built/);
    const program = join(import.meta.dirname, 'compare.js');
    const misused = (): unknown => execFileSync(process.execPath, [program], { stdio: 'pipe' });
    assert.throws(misused, (error: { status?: number }) => error.status === 2);
  });
});
