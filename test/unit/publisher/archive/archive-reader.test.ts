import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { defaultArchiveLimits as limits } from '../../../../src/core/limits.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { inspectArchive } from '../../../../src/publisher/archive/archive-reader.js';
import { packBundle, tarHeader, tarPaddingBytes } from '../../../../src/publisher/archive/build-bundle.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import { seededBytes } from '../../../kit/assert/seeded.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { manifestBombs } from '../../../kit/repository/manifest-bombs.js';

const files = { a: 'aaaa', '+bin/b': 'b', 'zöne/日本': 'long', empty: '', large: seededBytes(2_100_000) };

async function packed(dir: TempDir): Promise<{ path: string; manifestDigest: string }> {
  const tree = await readSourceTree(writeTree(dir.join('source'), files), limits);
  const path = dir.join('archive.tar.br');
  await packBundle(tree, { archivePath: path, limits, durableFs: createDurableFs() });
  return { path, manifestDigest: tree.manifestDigest };
}

function repack(path: string, change: (tar: Buffer) => Buffer): void {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 1 };
  const tar = change(brotliDecompressSync(fs.readFileSync(path)));
  fs.writeFileSync(path, brotliCompressSync(tar, { params }));
}

describe('inspectArchive', () => {
  it('reports digests, size and every file of an archive of ours', async () => {
    using dir = tempDir();
    const { path, manifestDigest } = await packed(dir);
    const report = await inspectArchive(path, limits);
    const bytes = fs.readFileSync(path);
    assert.equal(report.archiveBytes, bytes.length);
    assert.equal(report.archiveDigest, `sha256:${createHash('sha256').update(bytes).digest('hex')}`);
    assert.equal(report.manifestDigest, manifestDigest);
    assert.deepEqual(
      report.manifest.files.map((file) => file.path),
      ['a', 'bin/b', 'empty', 'large', 'zöne/日本'],
    );
  });

  const offsetOf = (tar: Buffer, text: string) => tar.lastIndexOf(text);
  const changes: Readonly<Record<string, { change: (tar: Buffer) => Buffer; code: string }>> = {
    'a file with other content': {
      change: (tar) => {
        tar.write('AAAA', offsetOf(tar, 'aaaa'));
        return tar;
      },
      code: 'MANIFEST_MISMATCH',
    },
    'a header with another mode': {
      change: (tar) => {
        tar.write('7', tar.indexOf('000644 ', 1024) + 3);
        return tar;
      },
      code: 'MANIFEST_MISMATCH',
    },
    'bytes in the padding': {
      change: (tar) => {
        tar.write('x', offsetOf(tar, 'aaaa') + 4);
        return tar;
      },
      code: 'ARCHIVE_MALFORMED',
    },
    'a second archive after the end': {
      change: (tar) => Buffer.concat([tar, tar]),
      code: 'ARCHIVE_MALFORMED',
    },
    'an end that is missing': { change: (tar) => tar.subarray(0, -512), code: 'ARCHIVE_MALFORMED' },
    'a cut in a file': { change: (tar) => tar.subarray(0, 1_000_000), code: 'ARCHIVE_MALFORMED' },
    'no manifest': { change: (tar) => tar.subarray(512), code: 'ARCHIVE_MALFORMED' },
    'an empty tar': { change: () => Buffer.alloc(0), code: 'ARCHIVE_MALFORMED' },
    'a manifest that is none': {
      change: (tar) => {
        tar.write('x', 512);
        return tar;
      },
      code: 'MANIFEST_MALFORMED',
    },
  };
  for (const [name, { change, code }] of Object.entries(changes)) {
    it(`refuses ${name}: ${code}`, async () => {
      using dir = tempDir();
      const { path } = await packed(dir);
      repack(path, change);
      await assert.rejects(inspectArchive(path, limits), { code });
    });
  }

  it('refuses a file that is not Brotli, is truncated, is missing, or is not regular', async () => {
    using dir = tempDir();
    const { path } = await packed(dir);
    fs.truncateSync(path, 1000);
    await assert.rejects(inspectArchive(path, limits), { code: 'ARCHIVE_MALFORMED' });
    fs.writeFileSync(path, 'plain text');
    await assert.rejects(inspectArchive(path, limits), { code: 'ARCHIVE_MALFORMED' });
    await assert.rejects(inspectArchive(dir.join('none'), limits), { code: 'ARCHIVE_MALFORMED' });
    await assert.rejects(inspectArchive(dir.path, limits), { code: 'ARCHIVE_MALFORMED' });
  });

  it('is bounded by the size of the archive', async () => {
    using dir = tempDir();
    const { path } = await packed(dir);
    const tight = { ...limits, maxArchiveBytes: 1000 };
    await assert.rejects(inspectArchive(path, tight), { code: 'ARCHIVE_LIMIT' });
  });
});

function ourEntry(path: string, content: Buffer): Buffer {
  const padding = Buffer.alloc(tarPaddingBytes(content.length));
  return Buffer.concat([tarHeader(path, content.length, { executable: false }), content, padding]);
}

describe('inspectArchive of a bomb', () => {
  for (const { name, code, archive, manifestLength } of manifestBombs({
    bytes: 2_000_000,
    entry: ourEntry,
  })) {
    if (manifestLength !== undefined) continue;
    it(`bomb ${name}: ${code}`, async () => {
      using dir = tempDir();
      fs.writeFileSync(dir.join('bomb'), archive);
      await assert.rejects(inspectArchive(dir.join('bomb'), { ...limits, maxEntries: 5000 }), { code });
    });
  }
});
