import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { Parser } from 'tar';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { parseManifest } from '../../../../src/core/release/manifest.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { packBundle } from '../../../../src/publisher/archive/build-bundle.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { seededBytes } from '../../../kit/assert/seeded.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const limits = defaultArchiveLimits;
const durableFs = createDurableFs();

const longName = `${'deep/'.repeat(20)}${'n'.repeat(120)}.yaml`;
const content = {
  'block.rpz': '$TTL 30\n',
  'views/eu.yaml': 'eu: 1\n',
  '+bin/check': '#!/bin/sh\n',
  empty: '',
  'zöne/日本.txt': 'x',
  'b "q" $x': 'y',
  'B/upper': 'z',
  [longName]: 'long',
};
const expectedOrder = [
  'B/upper',
  'b "q" $x',
  'bin/check',
  'block.rpz',
  longName,
  'empty',
  'views/eu.yaml',
  'zöne/日本.txt',
];

async function pack(dir: TempDir, source: string, name = 'archive', tight = limits) {
  const tree = await readSourceTree(source, tight);
  const packed = await packBundle(tree, { archivePath: dir.join(name), limits: tight, durableFs });
  return { tree, packed, archive: fs.readFileSync(packed.archivePath) };
}

interface Entry {
  readonly path: string;
  readonly header: object;
  readonly bytes: Buffer;
}

function entriesOf(tar: Buffer): Entry[] {
  const entries: Entry[] = [];
  const parser = new Parser({ strict: true });
  parser.on('entry', (entry) => {
    const chunks: Buffer[] = [];
    const { path, type, mode, uid, gid, uname, gname, mtime, size } = entry;
    entry.on('data', (chunk: Buffer) => chunks.push(chunk));
    entry.on('end', () => {
      const header = { type, mode, uid, gid, uname, gname, mtime: mtime?.getTime(), size };
      entries.push({ path, header, bytes: Buffer.concat(chunks) });
    });
  });
  parser.end(tar);
  return entries;
}

describe('packBundle', () => {
  it('writes the manifest first, then the files by path bytes, without time or owner', async () => {
    using dir = tempDir();
    const { archive, tree } = await pack(dir, writeTree(dir.join('s'), content));
    const [first, ...rest] = entriesOf(brotliDecompressSync(archive));
    assert.equal(first?.path, '.writ-manifest.json');
    assert.deepEqual(first.bytes, tree.manifestBytes);
    assert.deepEqual(
      rest.map((entry) => entry.path),
      expectedOrder,
    );
    for (const entry of [first, ...rest]) {
      const mode = entry.path === 'bin/check' ? 0o755 : 0o644;
      const size = entry.bytes.length;
      const plain = { type: 'File', mode, uid: 0, gid: 0, uname: '', gname: '', mtime: 0, size };
      assert.deepEqual(entry.header, plain, entry.path);
    }
  });

  it('has a manifest of its files', async () => {
    using dir = tempDir();
    const { archive } = await pack(dir, writeTree(dir.join('s'), content));
    const [first, ...rest] = entriesOf(brotliDecompressSync(archive));
    assert.ok(first);
    const { files } = parseManifest(first.bytes, limits);
    const digest = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    assert.deepEqual(
      files.map((file) => [file.path, file.sizeBytes, file.digest, file.executable]),
      rest.map(({ path, bytes }) => [path, bytes.length, digest(bytes), path === 'bin/check']),
    );
  });

  it('gives the same bytes for the same tree, whatever its times, modes and order of making', async () => {
    using dir = tempDir();
    const one = await pack(dir, writeTree(dir.join('one'), content), 'a');
    const reversed = Object.fromEntries(Object.entries(content).reverse());
    const source = writeTree(dir.join('two'), reversed);
    fs.utimesSync(`${source}/block.rpz`, 1, 1);
    fs.chmodSync(`${source}/empty`, 0o600);
    const two = await pack(dir, source, 'b');
    assert.deepEqual(one.archive, two.archive);
    assert.equal(one.packed.archiveDigest, two.packed.archiveDigest);
    assert.equal(one.tree.manifestDigest, two.tree.manifestDigest);
  });

  it('reports the size and digest of the bytes on disk, mode 0644 under any umask', async () => {
    using dir = tempDir();
    const before = process.umask(0o077);
    try {
      const { archive, packed } = await pack(dir, writeTree(dir.join('s'), content));
      assert.equal(packed.archiveBytes, archive.length);
      assert.equal(packed.archiveDigest, `sha256:${createHash('sha256').update(archive).digest('hex')}`);
      assert.equal(fs.statSync(packed.archivePath).mode & 0o777, 0o644);
    } finally {
      process.umask(before);
    }
  });

  it('is read by GNU tar: the same names and contents', async () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), content);
    const { archive } = await pack(dir, source);
    const tar = dir.join('plain.tar');
    fs.writeFileSync(tar, brotliDecompressSync(archive));
    const listed = execFileSync('tar', ['--quoting-style=literal', '-tf', tar], { encoding: 'utf8' });
    assert.deepEqual(listed.trimEnd().split('\n'), ['.writ-manifest.json', ...expectedOrder]);
    fs.mkdirSync(dir.join('out'));
    execFileSync('tar', ['-xf', tar, '-C', dir.join('out')]);
    fs.rmSync(dir.join('out', '.writ-manifest.json'));
    execFileSync('diff', ['-r', source, dir.join('out')]);
  });

  it('packs files larger than its buffer', async () => {
    using dir = tempDir();
    const large = seededBytes(3_500_001);
    const { archive } = await pack(dir, writeTree(dir.join('s'), { large, 'after.txt': 'x' }));
    const entries = entriesOf(brotliDecompressSync(archive));
    assert.ok(entries.find((entry) => entry.path === 'large')?.bytes.equals(large));
  });

  const changes: Readonly<Record<string, (source: string) => void>> = {
    'other content of the same size': (source) => fs.writeFileSync(`${source}/a`, '2222'),
    'a longer file': (source) => fs.appendFileSync(`${source}/a`, 'more'),
    'a shorter file': (source) => fs.truncateSync(`${source}/a`, 1),
    'an executable bit': (source) => fs.chmodSync(`${source}/a`, 0o755),
    'a removed file': (source) => fs.rmSync(`${source}/a`),
    'a link in its place': (source) => {
      fs.renameSync(`${source}/a`, `${source}/other`);
      fs.symlinkSync('other', `${source}/a`);
    },
    'a FIFO in its place': (source) => {
      fs.rmSync(`${source}/a`);
      execFileSync('mkfifo', [`${source}/a`]);
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`refuses SOURCE that changed after it was read: ${name}; and leaves no archive`, async () => {
      using dir = tempDir();
      const source = writeTree(dir.join('s'), { a: '1111', b: 'b' });
      const tree = await readSourceTree(source, limits);
      change(source);
      const packing = packBundle(tree, { archivePath: dir.join('archive'), limits, durableFs });
      await assert.rejects(packing, { code: 'SOURCE_REFUSED' });
      assert.ok(!fs.existsSync(dir.join('archive')));
    });
  }

  it('refuses archives that hosts would refuse as a bomb, or as too large', async () => {
    using dir = tempDir();
    const zeros = writeTree(dir.join('zeros'), { zeros: Buffer.alloc(5_000_000) });
    await assert.rejects(pack(dir, zeros), { code: 'SOURCE_REFUSED' });
    const random = writeTree(dir.join('random'), { random: seededBytes(20_000) });
    const tight = { ...limits, maxArchiveBytes: 10_000 };
    await assert.rejects(pack(dir, random, 'archive', tight), { code: 'SOURCE_REFUSED' });
    assert.ok(!fs.existsSync(dir.join('archive')));
  });

  it('ends at a signal, and leaves no archive', async () => {
    using dir = tempDir();
    const tree = await readSourceTree(writeTree(dir.join('s'), { a: seededBytes(3_000_000) }), limits);
    const controller = new AbortController();
    const report = { progress: () => controller.abort() };
    const { signal } = controller;
    const packing = packBundle(tree, {
      archivePath: dir.join('archive'),
      limits,
      durableFs,
      report,
      signal,
    });
    await assert.rejects(packing, { code: 'INTERRUPTED' });
    assert.ok(!fs.existsSync(dir.join('archive')));
  });

  it('flushes the archive under its label', async () => {
    using dir = tempDir();
    const seen: string[] = [];
    const watched = createDurableFs({ after: ({ op }) => seen.push(op) });
    const tree = await readSourceTree(writeTree(dir.join('s'), { a: 'a' }), limits);
    await packBundle(tree, { archivePath: dir.join('archive'), limits, durableFs: watched });
    assert.deepEqual(seen, ['repo.archive:write']);
  });
});

describe('packBundle', () => {
  it('fails with the error of the disk, and not INTERNAL, where it cannot write', async () => {
    using dir = tempDir();
    const tree = await readSourceTree(writeTree(dir.join('source'), content), limits);
    const archivePath = dir.join('none', 'archive');
    const error = await rejectsCode('DISK_FAILED', packBundle(tree, { archivePath, limits, durableFs }));
    assert.deepEqual([error.facts['op'], error.facts['path']], ['repo.archive:write', archivePath]);
  });
});
