// Passphrases typed at a terminal: not echoed, twice for new keys, and three attempts for an existing key.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { writOnTerminal } from '../../kit/cli/on-terminal.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { needs } from '../../kit/programs/real-programs.js';

const placesIn = (dir: TempDir): string[] => ['--repository', dir.join('repo'), '--keys', dir.join('keys')];
const newKeysPrompt = 'Passphrase for the new keys';
const repeatPrompt = 'Repeat it';
const secret = 'correct-horse';

function publishArgs(dir: TempDir): string[] {
  return ['publish', writeTree(dir.join('source'), { a: '1' }), ...placesIn(dir), '--bundle', 'access'];
}

describe('a passphrase at the terminal', { ...needs('script', 'bsdutils'), ...longCase }, () => {
  it('is typed twice for new keys, is never on the screen, and unlocks them later', async () => {
    using dir = tempDir();
    const init = await writOnTerminal(
      ['init', ...placesIn(dir)],
      [
        { question: newKeysPrompt, typed: secret },
        { question: repeatPrompt, typed: 'something-else' },
        { question: newKeysPrompt, typed: secret },
        { question: repeatPrompt, typed: secret },
      ],
    );
    assert.equal(init.exitCode, 0, init.screen);
    assert.ok(!init.screen.includes(secret), 'the passphrase is on the screen');
    const wrong = await runWrit([...publishArgs(dir), '--json'], { env: { WRIT_PASSPHRASE: 'wrong' } });
    assert.equal(jsonOf(wrong)['code'], 'PASSPHRASE_WRONG');
    const typed = await writOnTerminal(publishArgs(dir), [
      { question: 'Passphrase for', typed: 'wrong' },
      { question: 'Wrong passphrase', typed: secret },
    ]);
    assert.equal(typed.exitCode, 0, typed.screen);
    assert.match(typed.screen, /PUBLISHED/);
  });

  it('is not requested when init would refuse its arguments or the repository exists', async () => {
    using dir = tempDir();
    const refused = await writOnTerminal(['init', ...placesIn(dir), '--root-keys', '2'], []);
    assert.deepEqual([refused.exitCode, refused.screen.includes('Passphrase')], [2, false], refused.screen);
    assert.equal((await runWrit(['init', ...placesIn(dir), '--no-passphrase'])).exitCode, 0);
    const again = await writOnTerminal(['init', ...placesIn(dir)], []);
    assert.match(again.screen, /REPOSITORY_EXISTS/);
    assert.ok(!again.screen.includes('Passphrase'), again.screen);
  });

  it('is generated and printed once when the user types none', async () => {
    using dir = tempDir();
    const init = await writOnTerminal(['init', ...placesIn(dir)], [{ question: newKeysPrompt, typed: '' }]);
    assert.equal(init.exitCode, 0, init.screen);
    const [generated = ''] = /[a-z2-9]{5}(?:-[a-z2-9]{5}){4}/.exec(init.screen) ?? [];
    const publish = await runWrit(publishArgs(dir), { env: { WRIT_PASSPHRASE: generated } });
    assert.equal(publish.exitCode, 0, publish.stderr);
  });

  it('is requested at most three times: without an equal repetition, init exits with PASSPHRASE_NEEDED and makes no keys', async () => {
    using dir = tempDir();
    const answers = [1, 2, 3].flatMap((n) => [
      { question: newKeysPrompt, typed: `a${n}` },
      { question: repeatPrompt, typed: `b${n}` },
    ]);
    const init = await writOnTerminal(['init', ...placesIn(dir)], answers);
    assert.equal(init.exitCode, 2, init.screen);
    assert.match(init.screen, /PASSPHRASE_NEEDED/);
    assert.equal(init.untyped, 0);
  });

  it('ends init with exit 130 on Ctrl-C at the prompt', async () => {
    using dir = tempDir();
    const init = await writOnTerminal(
      ['init', ...placesIn(dir)],
      [{ question: newKeysPrompt, typed: '\u0003' }],
    );
    assert.equal(init.exitCode, 130, init.screen);
  });
});
