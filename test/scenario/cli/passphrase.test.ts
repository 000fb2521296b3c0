// Passphrases as a person types them: on a terminal, unseen, twice when new, and three tries for a key that is there.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writOnTerminal } from '../../kit/cli/on-terminal.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { needs } from '../../kit/programs/real-programs.js';

const placesIn = (dir: TempDir): string[] => ['--repository', dir.join('repo'), '--keys', dir.join('keys')];
const newKeys = 'Passphrase for the new keys';
const again = 'Repeat it';
const secret = 'correct-horse';

function publishArgs(dir: TempDir): string[] {
  return ['publish', writeTree(dir.join('source'), { a: '1' }), ...placesIn(dir), '--bundle', 'access'];
}

describe('a passphrase at the terminal', needs('script', 'bsdutils'), () => {
  it('is typed twice for new keys, is never shown, and opens them afterwards', async () => {
    using dir = tempDir();
    const init = await writOnTerminal(
      ['init', ...placesIn(dir)],
      [
        { question: newKeys, typed: secret },
        { question: again, typed: 'something-else' },
        { question: newKeys, typed: secret },
        { question: again, typed: secret },
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

  it('is not asked for where nothing would be made', async () => {
    using dir = tempDir();
    const one = await writOnTerminal(['init', ...placesIn(dir), '--root-keys', '2'], []);
    assert.deepEqual([one.exitCode, one.screen.includes('Passphrase')], [2, false], one.screen);
    assert.equal((await runWrit(['init', ...placesIn(dir), '--no-passphrase'])).exitCode, 0);
    const again = await writOnTerminal(['init', ...placesIn(dir)], []);
    assert.match(again.screen, /REPOSITORY_EXISTS/);
    assert.ok(!again.screen.includes('Passphrase'), again.screen);
  });

  it('is made up and shown once when nothing is typed', async () => {
    using dir = tempDir();
    const init = await writOnTerminal(['init', ...placesIn(dir)], [{ question: newKeys, typed: '' }]);
    assert.equal(init.exitCode, 0, init.screen);
    const [madeUp = ''] = /[a-z2-9]{5}(?:-[a-z2-9]{5}){4}/.exec(init.screen) ?? [];
    const publish = await runWrit(publishArgs(dir), { env: { WRIT_PASSPHRASE: madeUp } });
    assert.equal(publish.exitCode, 0, publish.stderr);
  });

  it('is not asked for ever: who never types the same twice gets no keys', async () => {
    using dir = tempDir();
    const answers = [1, 2, 3].flatMap((n) => [
      { question: newKeys, typed: `a${n}` },
      { question: again, typed: `b${n}` },
    ]);
    const init = await writOnTerminal(['init', ...placesIn(dir)], answers);
    assert.equal(init.exitCode, 2, init.screen);
    assert.match(init.screen, /PASSPHRASE_NEEDED/);
    assert.equal(init.untyped, 0);
  });

  it('gives 130 to whoever ends the question', async () => {
    using dir = tempDir();
    const init = await writOnTerminal(['init', ...placesIn(dir)], [{ question: newKeys, typed: '\u0003' }]);
    assert.equal(init.exitCode, 130, init.screen);
  });
});
