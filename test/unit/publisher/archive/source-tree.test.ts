import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { isWritError } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const limits = defaultArchiveLimits;

async function refusalsOf(
  source: string,
  { tight = limits, code = 'SOURCE_REFUSED', ...choice }: Readonly<Record<string, unknown>> = {},
): Promise<readonly unknown[]> {
  try {
    await readSourceTree(source, tight as typeof limits, choice);
  } catch (error) {
    if (!isWritError(error)) throw error;
    assert.equal(error.code, code);
    return (error.facts['refusals'] as unknown[] | undefined) ?? [];
  }
  assert.fail('SOURCE was accepted');
}

describe('readSourceTree', () => {
  it('lists files by path bytes, and reports the empty directories that it leaves out', async () => {
    using dir = tempDir();
    const files = { 'b/c': 'c', a: 'a', 'b-': '', 'none/inner/': '', 'b/empty/': '' };
    const tree = await readSourceTree(writeTree(dir.join('s'), files), limits);
    assert.deepEqual(
      tree.manifest.files.map((file) => file.path),
      ['a', 'b-', 'b/c'],
    );
    assert.deepEqual(tree.droppedDirectories, ['b/empty', 'none', 'none/inner']);
  });

  it('takes a link to a directory as SOURCE itself', async () => {
    using dir = tempDir();
    writeTree(dir.join('s'), { a: 'a' });
    fs.symlinkSync('s', dir.join('link'));
    assert.equal((await readSourceTree(dir.join('link'), limits)).manifest.files.length, 1);
  });

  const pathsOf = async (source: string, choice = {}) => {
    const { manifest, excluded } = await readSourceTree(source, limits, choice);
    return { paths: manifest.files.map((file) => file.path), excluded };
  };

  it('leaves out what --exclude and .writignore name, and .writignore itself', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), {
      '.writignore': '# drafts\n\n/build/\n*.bak\nsub/build\n',
      a: 'a',
      'a.bak': '',
      'build/x': 'x',
      'sub/b.bak': 'b',
      'sub/build': 'a file, named with its path',
      'deep/build/kept': 'k',
      'notes/n': 'n',
      'sub/notes': 'a file, and the pattern is of directories',
    });
    fs.symlinkSync('a', `${source}/link.bak`);
    const { paths, excluded } = await pathsOf(source, { exclude: ['notes/'] });
    assert.deepEqual(paths, ['a', 'deep/build/kept', 'sub/notes']);
    assert.deepEqual(excluded, ['a.bak', 'build', 'link.bak', 'notes', 'sub/b.bak', 'sub/build']);
  });

  const secrets = [
    '.git/config',
    '.env',
    'sub/.env.production',
    '.netrc',
    '.ssh/known_hosts',
    'keys/id_ed25519',
  ];
  for (const path of secrets) {
    it(`refuses ${path} unless it is left out or included`, async () => {
      using dir = tempDir();
      const source = writeTree(dir.join('s'), { ok: 'ok', [path]: 'secret' });
      const [refusal] = await refusalsOf(source, { code: 'CONTENT_SECRET' });
      assert.match(String(refusal), /--exclude or \.writignore, or give --include$/);
      const name = path.split('/').find((part) => /^(\.|id_)/.test(part)) ?? '';
      assert.deepEqual((await pathsOf(source, { exclude: [name] })).paths, ['ok']);
      assert.ok((await pathsOf(source, { include: [name] })).paths.includes(path));
    });
  }

  it('finds a secret below a directory with a dot, too', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { '.config/app/.env': 'secret' });
    assert.equal((await refusalsOf(source, { code: 'CONTENT_SECRET' })).length, 1);
    fs.writeFileSync(`${source}/ok`, '');
    assert.deepEqual((await pathsOf(source, { exclude: ['.env'] })).paths, ['ok']);
  });

  it('takes names that only resemble those of secrets', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), {
      '.gitignore': '',
      environment: '',
      'a.env': '',
      'id_rsa.pub': '',
    });
    assert.equal((await pathsOf(source)).paths.length, 4);
  });

  for (const pattern of ['!kept', '/', ' '.repeat(2), 'x'.repeat(1001)]) {
    it(`refuses the pattern ${pattern.slice(0, 6)}`, async () => {
      using dir = tempDir();
      const source = writeTree(dir.join('s'), { a: 'a' });
      const wanted = { code: 'USAGE' };
      if (pattern.trim() !== '') await assert.rejects(pathsOf(source, { exclude: [pattern] }), wanted);
      fs.writeFileSync(`${source}/.writignore`, `${pattern}\n`);
      if (pattern.trim() !== '') await assert.rejects(pathsOf(source), wanted);
      else assert.deepEqual((await pathsOf(source)).paths, ['a']);
    });
  }

  it('limits a .writignore, and follows no link to one', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { a: 'a', '.writignore': '#'.repeat(65_537) });
    await assert.rejects(pathsOf(source), { code: 'SOURCE_REFUSED' });
    fs.writeFileSync(`${source}/.writignore`, 'p\n'.repeat(1001));
    await assert.rejects(pathsOf(source), { code: 'USAGE' });
    fs.rmSync(`${source}/.writignore`);
    fs.symlinkSync('/etc/passwd', `${source}/.writignore`);
    await assert.rejects(pathsOf(source), { code: 'SOURCE_REFUSED' });
  });

  const hostile: Readonly<Record<string, (source: string) => void>> = {
    'a link to a file': (source) => fs.symlinkSync('ok', `${source}/link`),
    'a link that leads out': (source) => fs.symlinkSync('/etc/passwd', `${source}/link`),
    'a link to a directory': (source) => fs.symlinkSync('.', `${source}/link`),
    'a FIFO': (source) => void execFileSync('mkfifo', [`${source}/fifo`]),
    'the name of the manifest': (source) => fs.writeFileSync(`${source}/.writ-manifest.json`, ''),
    'a name that is not UTF-8': (source) =>
      fs.writeFileSync(Buffer.concat([Buffer.from(`${source}/a`), Buffer.from([0xff])]), ''),
    'a name with a backslash': (source) => fs.writeFileSync(`${source}/a\\b`, ''),
    'a name with a line break': (source) => fs.writeFileSync(`${source}/a\nb`, ''),
    'twins by case': (source) => fs.writeFileSync(`${source}/OK`, ''),
    'a directory whose name breaks the rules': (source) => fs.mkdirSync(`${source}/dir.`),
  };
  for (const [name, make] of Object.entries(hostile)) {
    it(`refuses ${name}`, async () => {
      using dir = tempDir();
      const source = writeTree(dir.join('s'), { ok: 'ok' });
      make(source);
      assert.equal((await refusalsOf(source)).length, 1);
    });
  }

  it('prints a line break of a name as what it is, on one line', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { ok: 'ok' });
    fs.writeFileSync(`${source}/a\nhint: b`, '');
    fs.symlinkSync('ok', `${source}/c\u001b[1m`);
    const { message } = await rejectsCode('SOURCE_REFUSED', readSourceTree(source, limits));
    assert.match(message, /a\\u\{a\}hint: b/);
    assert.equal(message.split('\n').length, 2, message);
    assert.equal(message.includes('\u001b'), false);
  });

  it('reports all refusals at once, up to a limit', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { ok: 'ok' });
    for (const name of ['one', 'two', 'three']) fs.symlinkSync('ok', `${source}/${name}`);
    assert.equal((await refusalsOf(source)).length, 3);
    for (let n = 0; n < 50; n += 1) fs.symlinkSync('ok', `${source}/n${n}`);
    assert.equal((await refusalsOf(source)).length, 20);
  });

  it('names the first five in its message, and where a pattern is that it does not take', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { ok: 'ok' });
    for (let n = 1; n <= 6; n += 1) fs.symlinkSync('ok', `${source}/n${n}`);
    await assert.rejects(readSourceTree(source, limits), /n1 .*\n.*n5 [^\n]* \(and 1 more\)$/s);
    const other = writeTree(dir.join('o'), { ok: 'ok', '.writignore': '!.env\n' });
    await assert.rejects(readSourceTree(other, limits), /^WritError: \.writignore:1: !\.env is not a usable/);
  });

  it('ends at a signal, also between many small files', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { a: 'a', b: 'b' });
    const controller = new AbortController();
    const report = { progress: () => controller.abort() };
    const reading = readSourceTree(source, limits, { report, signal: controller.signal });
    await assert.rejects(reading, { code: 'INTERRUPTED' });
    assert.deepEqual((await pathsOf(source)).paths, ['a', 'b']);
  });

  it('lets a signal come while many small files are read', async () => {
    using dir = tempDir();
    const names = Array.from({ length: 200 }, (_, at) => [`f${at}`, 'x'] as const);
    const source = writeTree(dir.join('s'), Object.fromEntries(names));
    let hasTurned = false;
    setImmediate(() => {
      hasTurned = true;
    });
    await readSourceTree(source, limits);
    assert.ok(hasTurned);
  });

  it('refuses a tree without a file, a missing one, and a file in its place', async () => {
    using dir = tempDir();
    await refusalsOf(writeTree(dir.join('empty'), { 'sub/': '' }));
    await refusalsOf(dir.join('missing'));
    fs.writeFileSync(dir.join('file'), '');
    await refusalsOf(dir.join('file'));
  });

  for (const [name, tight] of Object.entries({
    'number of files': { ...limits, maxEntries: 1 },
    'size of a file': { ...limits, maxFileBytes: 5 },
    'size of the tree': { ...limits, maxTreeBytes: 9 },
    depth: { ...limits, maxDepth: 1 },
    'size of the manifest': { ...limits, maxManifestBytes: 100 },
  })) {
    it(`is bounded by ${name}`, async () => {
      using dir = tempDir();
      await refusalsOf(writeTree(dir.join('s'), { a: '123456', 'b/c': '1234' }), { tight });
    });
  }
});
