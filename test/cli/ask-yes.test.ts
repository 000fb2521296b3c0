// Questions before something that cannot be taken back, at a terminal: y goes on, all else leaves things alone, and
// who closes the input gets the prompt back.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writOnTerminal } from '../support/on-terminal.js';
import { needs } from '../support/real-programs.js';
import { runWrit } from '../support/run-writ.js';
import { type TempDir, tempDir } from '../support/temp-dir.js';

const question = 'Delegate to dns-team? [y/N]';

/** @returns the arguments of a delegation that asks first */
async function delegateArgs(dir: TempDir): Promise<string[]> {
  const places = ['--repository', dir.join('repo'), '--keys', dir.join('keys')];
  await runWrit(['init', ...places, '--no-passphrase']);
  await runWrit(['key', 'new', dir.join('dns.key'), '--no-passphrase']);
  return [
    'delegate',
    'dns-team',
    ...places,
    '--paths',
    'dns-edge/stable.tar.br',
    '--key',
    dir.join('dns.pub'),
  ];
}

describe('a question at the terminal', needs('script', 'bsdutils'), () => {
  it('is answered with y, or anything else for no', async () => {
    using dir = tempDir();
    const args = await delegateArgs(dir);
    const no = await writOnTerminal(args, [{ question, typed: 'maybe' }]);
    assert.equal(no.exitCode, 0, no.screen);
    assert.match(no.screen, /LEFT ALONE/);
    const yes = await writOnTerminal(args, [{ question, typed: 'Y' }]);
    assert.equal(yes.exitCode, 0, yes.screen);
    assert.match(yes.screen, /DELEGATED/);
  });

  for (const [keys, typed] of [
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ] as const) {
    it(`ends at ${keys} and changes nothing`, async () => {
      using dir = tempDir();
      const args = await delegateArgs(dir);
      const ended = await writOnTerminal(args, [{ question, typed }]);
      assert.match(ended.screen, /INTERRUPTED/);
      assert.notEqual(ended.exitCode, 0);
      const preview = await runWrit([...args, '--dry-run']);
      assert.match(preview.stdout, /WOULD DELEGATE/);
    });
  }
});
