// Which secrets readSourceTree refuses, what it notes for the publisher, and which patterns it takes.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { isWritError } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const limits = defaultArchiveLimits;
const token = `ghp_${'aB3'.repeat(12)}`;
const ownKey = '{"writ-key": 1, "scheme": "ed25519"}\n';

async function refusal(source: string, choice = {}) {
  try {
    await readSourceTree(source, limits, choice);
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
  assert.fail('SOURCE was accepted');
}

describe('a secret in a file of SOURCE', () => {
  it('is refused with its path and line, and never shown', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), {
      ok: 'ok',
      'sub/app.yaml': `a: 1\ntoken: ${token}\n`,
      b: ownKey,
    });
    const error = await refusal(source);
    assert.equal(error.code, 'CONTENT_SECRET');
    assert.deepEqual(error.facts['secrets'], [
      { path: 'b', line: 1, what: 'a secret key file of Writ' },
      { path: 'sub/app.yaml', line: 2, what: 'a GitHub token' },
    ]);
    assert.match(error.message, /sub\/app\.yaml:2 contains a GitHub token/);
    assert.ok(!JSON.stringify([error.message, error.facts]).includes(token.slice(4, 12)));
  });

  it('is permitted in a file that --include names, and in no other', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { 'a.yaml': token, 'b.yaml': token });
    const error = await refusal(source, { include: ['/a.yaml'] });
    assert.deepEqual(
      (error.facts['secrets'] as { path: string }[]).map(({ path }) => path),
      ['b.yaml'],
    );
    const tree = await readSourceTree(source, limits, { include: ['/a.yaml', '/b.yaml'] });
    assert.equal(tree.manifest.files.length, 2);
  });

  it('is refused whatever is included where it is a key of Writ', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { 'k/root-1.key': `${token}\n${ownKey}` });
    const error = await refusal(source, { include: ['*', 'k/', '/k/root-1.key'] });
    assert.deepEqual(error.facts['secrets'], [
      { path: 'k/root-1.key', line: 2, what: 'a secret key file of Writ' },
    ]);
    assert.match(error.message, /--include does not permit it/);
  });

  it('is not searched for in a file that is left out', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { ok: 'ok', 'x.key': ownKey, '.writignore': '*.key\n' });
    assert.deepEqual((await readSourceTree(source, limits)).excluded, ['x.key']);
  });

  it('is named with at most 20 others', async () => {
    using dir = tempDir();
    const files = Array.from({ length: 30 }, (_, at) => [`f${at}`, token] as const);
    const error = await refusal(writeTree(dir.join('s'), Object.fromEntries(files)));
    assert.equal((error.facts['secrets'] as unknown[]).length, 20);
  });
});

describe('what hosts will not have as it is', () => {
  it('is noted: modes that are narrower or special, and hard links', async () => {
    using dir = tempDir();
    const names = { plain: '', program: '', private: '', group: '', setuid: '', wide: '', one: '' };
    const source = writeTree(dir.join('s'), names);
    const modes = { program: 0o755, private: 0o600, group: 0o750, setuid: 0o4755, wide: 0o664 };
    for (const [name, mode] of Object.entries(modes)) fs.chmodSync(`${source}/${name}`, mode);
    fs.linkSync(`${source}/one`, `${source}/two`);
    const tree = await readSourceTree(source, limits);
    assert.deepEqual(tree.changedModes, [
      { path: 'group', mode: '0750', hostMode: '0755' },
      { path: 'private', mode: '0600', hostMode: '0644' },
      { path: 'setuid', mode: '4755', hostMode: '0755' },
    ]);
    assert.deepEqual(tree.hardLinks, ['one', 'two']);
  });
});

describe('a pattern', () => {
  it('that matched nothing is named with its line, also in another case, with a remark, or from above', async () => {
    using dir = tempDir();
    const ignored = '# drafts\n*.bak\nSECRET.txt\nother  # note\nsecret.txt/\n/build/\nbuild/x\n';
    const files = { ok: '', 'secret.txt': '', 'a.bak': '', 'build/x': '', '.writignore': ignored };
    const tree = await readSourceTree(writeTree(dir.join('s'), files), limits, { exclude: ['typo', 'a.*'] });
    assert.deepEqual(tree.unusedPatterns, [
      'typo',
      '.writignore:3: SECRET.txt',
      '.writignore:4: other  # note',
      '.writignore:5: secret.txt/',
      '.writignore:7: build/x',
    ]);
    assert.deepEqual(tree.excluded, ['a.bak', 'build']);
  });

  const unusable = [
    '[secret.txt',
    '../s2/secret.txt',
    'secret.txt\u200b',
    'a{b',
    'a\rb',
    '(a+)+b',
    '*a*a*a*a*a*a*a*b',
  ];
  for (const pattern of unusable) {
    it(`${JSON.stringify(pattern)} is refused with its line`, async () => {
      using dir = tempDir();
      const source = writeTree(dir.join('s'), {
        ok: '',
        [`${'a'.repeat(60)}`]: '',
        '.writignore': `x\n${pattern}\n`,
      });
      const error = await refusal(source);
      assert.deepEqual([error.code, error.facts['place']], ['USAGE', '.writignore:2']);
      assert.equal((await refusal(dir.join('s'), { include: [pattern] })).code, 'USAGE');
    });
  }

  it('of a bracket that is escaped is taken', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { ok: '', '[x': '', '.writignore': '\\[x\n' });
    assert.deepEqual((await readSourceTree(source, limits)).excluded, ['[x']);
  });

  it('in a .writignore that is UTF-16, or below SOURCE, is refused', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { ok: '' });
    fs.writeFileSync(`${source}/.writignore`, Buffer.from('\ufeffsecret.txt\r\n', 'utf16le'));
    assert.match((await refusal(source)).message, /\.writignore is not UTF-8/);
    const other = await refusal(writeTree(dir.join('o'), { ok: '', 'sub/.writignore': 'x\n' }));
    assert.deepEqual(
      [other.code, /only \.writignore at the top/.test(other.message)],
      ['SOURCE_REFUSED', true],
    );
  });
});
