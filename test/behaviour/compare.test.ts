// The comparison sees one changed byte wherever it is recorded, and nothing where only time went by: on made-up programs
// that stand for two checkouts, played by the real story player.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Checkout, Misuse, openCheckout } from './checkout.js';
import { compareStory, type Ground } from './compare-story.js';
import { differencesOf } from './difference.js';

let base: string;
before(() => {
  base = mkdtempSync(join(tmpdir(), 'wb-test-'));
});
after(() => rmSync(base, { recursive: true, force: true }));

/** A checkout whose program says this. */
function checkoutThat(name: string, program: string): Checkout {
  const directory = join(base, name);
  for (const file of ['main.js', 'sdk.js', 'dist/demo/demo.js']) {
    mkdirSync(join(directory, file, '..'), { recursive: true });
    writeFileSync(join(directory, file), program);
  }
  const exports = { './sdk': { default: './sdk.js' } };
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ bin: { writ: 'main.js' }, exports }));
  return openCheckout(directory);
}

const honest = `
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
  const ground: Ground = {
    a: checkoutThat('a', honest),
    b: checkoutThat('b', program),
    base: join(base, `ground-${count}`),
    signal: new AbortController().signal,
    startMs: Date.parse('2026-03-01T12:00:00Z'),
  };
  mkdirSync(join(ground.base, 'common'), { recursive: true });
  const compared = await compareStory(ground, { name: 's', form: 'human', script });
  assert.equal(compared.a.length, 3);
  return compared.differences.join('\n');
}

describe('a comparison', () => {
  it('finds nothing where only time, pids, directories and random bytes of the machine differ', async () => {
    assert.equal(await differencesWith(honest), '');
  });

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
      assert.ok(honest.includes(from));
      assert.match(await differencesWith(honest.replace(from, to)), seen);
    });
  }

  it('says when a story has a command more', () => {
    const one = { title: '$ writ a', text: '' };
    assert.deepEqual(differencesOf([one], [one, { title: '$ writ b', text: '' }]), [
      '  #2 (nothing)',
      '    B: $ writ b',
    ]);
  });

  it('refuses what is no checkout, and one that is not built', () => {
    assert.throws(() => openCheckout(join(base, 'nowhere')), Misuse);
    checkoutThat('unbuilt', honest);
    rmSync(join(base, 'unbuilt', 'main.js'));
    assert.throws(() => openCheckout(join(base, 'unbuilt')), /not built/);
    const program = join(import.meta.dirname, 'compare.js');
    const misused = (): unknown => execFileSync(process.execPath, [program], { stdio: 'pipe' });
    assert.throws(misused, (error: { status?: number }) => error.status === 2);
  });
});
