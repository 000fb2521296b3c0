// Archives that are truncated, doubled, padded, too large for a limit, or bombs.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { manifestName } from '../../../../src/core/release/manifest.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { seededBytes } from '../../../kit/assert/seeded.js';
import { assertRefused, jail, type StageInput, stage } from '../../../kit/host/stage-harness.js';
import {
  type BundleFile,
  bundleTar,
  endOfArchive,
  fileEntry,
  manifestOf,
  pack,
  paxEntry,
  tarEntry,
} from '../../../kit/repository/archive-builder.js';

const files: readonly BundleFile[] = [
  { path: 'a', content: 'alpha' },
  { path: 'b', content: 'x'.repeat(1500) },
  { path: 'n'.repeat(120), content: 'long' },
];
const manifest = manifestOf(files);
const tar = bundleTar(files);
const gzipTarget = { path: 'dns-edge/stable.tar.gz' };

describe('a truncated archive', () => {
  it('is refused at each block boundary', async () => {
    for (let end = 0; end < tar.length; end += 512) {
      await assertRefused({ tar: tar.subarray(0, end), manifest }, [
        'ARCHIVE_MALFORMED',
        'MANIFEST_MISMATCH',
      ]);
    }
  });

  it('is refused within a block', async () => {
    for (let end = 1; end < tar.length; end += 397) {
      await assertRefused({ tar: tar.subarray(0, end), manifest }, 'ARCHIVE_MALFORMED');
    }
  });

  it('is refused with a truncated compressed stream', async () => {
    for (const [packed, target] of [
      [pack(tar), {}],
      [gzipSync(tar), gzipTarget],
    ] as const) {
      for (const end of [1, Math.floor(packed.length / 2), packed.length - 1]) {
        await assertRefused({ tar, manifest, archive: packed.subarray(0, end), target }, 'ARCHIVE_MALFORMED');
      }
    }
  });
});

describe('an archive with trailing bytes', () => {
  const trailing: Readonly<Record<string, Buffer>> = {
    'a byte': Buffer.from('x'),
    'a block of data': Buffer.alloc(512, 'x'),
    'data behind zeros': Buffer.concat([Buffer.alloc(2048), Buffer.from('x')]),
    'a second archive': bundleTar([{ path: '../victim', content: 'evil' }]),
    'more zeros than a tape record has': Buffer.alloc(20_480),
    'half a block of zeros': Buffer.alloc(100),
  };
  for (const [name, bytes] of Object.entries(trailing)) {
    it(`is refused with ${name} after its end`, async () => {
      await assertRefused({ tar: Buffer.concat([tar, bytes]), manifest }, 'ARCHIVE_MALFORMED');
    });
  }

  it('is refused with an entry after one end block', async () => {
    const early = Buffer.concat([tar.subarray(0, -512), fileEntry({ path: 'z', content: '' }), endOfArchive]);
    await assertRefused({ tar: early, manifest }, 'ARCHIVE_MALFORMED');
  });

  it('is refused with bytes after the compressed stream', async () => {
    for (const extra of [Buffer.from('x'), pack(tar), Buffer.alloc(300_000, 'x')]) {
      const archive = Buffer.concat([pack(tar), extra]);
      await assertRefused({ tar, manifest, archive }, 'ARCHIVE_MALFORMED');
    }
  });

  // A decoder ignores a zero byte there. A short stream fails first, as an aborted stream does.
  it('is refused with a zero byte after a compressed stream that was read completely', async () => {
    const large: readonly BundleFile[] = [{ path: 'a', content: seededBytes(1_000_000) }];
    const input = { tar: bundleTar(large), manifest: manifestOf(large) };
    for (const [packed, target] of [
      [pack(input.tar), {}],
      [gzipSync(input.tar), gzipTarget],
    ] as const) {
      const archive = Buffer.concat([packed, Buffer.alloc(1)]);
      await assertRefused({ ...input, archive, target }, 'ARCHIVE_MALFORMED');
    }
  });

  it('is refused with bytes or another member after a gzip stream', async () => {
    for (const extra of [Buffer.from('x'), gzipSync(tar), Buffer.alloc(300_000, 'x')]) {
      const archive = Buffer.concat([gzipSync(tar), extra]);
      await assertRefused({ tar, manifest, archive, target: gzipTarget }, 'ARCHIVE_MALFORMED');
    }
  });
});

describe('a file that is not an archive', () => {
  const cases: Readonly<Record<string, Partial<StageInput>>> = {
    'noise under Brotli': { tar: seededBytes(5000) },
    'noise instead of Brotli': { archive: Buffer.alloc(5000, 0xfe) },
    'a tar without compression': { archive: tar },
    'gzip under the name of Brotli': { archive: gzipSync(tar) },
    'Brotli under the name of gzip': { archive: pack(tar), target: gzipTarget },
    'Brotli in Brotli': { archive: brotliCompressSync(pack(tar)) },
    'gzip with a wrong sum': { archive: spoilt(gzipSync(tar)), target: gzipTarget },
    'nothing but an end': { tar: endOfArchive },
  };
  for (const [name, input] of Object.entries(cases)) {
    it(`is refused: ${name}`, async () => {
      await assertRefused({ tar, manifest, ...input }, 'ARCHIVE_MALFORMED');
    });
  }
});

function spoilt(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[copy.length - 8] = (copy[copy.length - 8] ?? 0) ^ 1;
  return copy;
}

describe('a header with wrong sizes', () => {
  const head = tarEntry({ path: manifestName, content: manifest });
  const cases: Readonly<Record<string, readonly [Buffer, string]>> = {
    'more than the body has': [tarEntry({ path: 'a', content: 'alpha', size: 5000 }), 'MANIFEST_MISMATCH'],
    'eight gigabytes': [tarEntry({ path: 'a', content: 'alpha', size: 0o77777777777 }), 'MANIFEST_MISMATCH'],
    'less than the body has': [tarEntry({ path: 'a', content: 'alpha', size: 0 }), 'MANIFEST_MISMATCH'],
    'another size in PAX': [
      Buffer.concat([paxEntry([['size', '0']]), tarEntry({ path: 'a', content: 'alpha' })]),
      'ARCHIVE_MALFORMED',
    ],
    'another size in PAX alone': [
      Buffer.concat([paxEntry([['size', '5']]), tarEntry({ path: 'a', content: 'alpha', size: 0 })]),
      'ARCHIVE_MALFORMED',
    ],
  };
  for (const [name, [entry, code]] of Object.entries(cases)) {
    it(`is refused: ${name}`, async () => {
      await assertRefused({ tar: Buffer.concat([head, entry, endOfArchive]), manifest }, code);
    });
  }
});

describe('the limits of an archive', () => {
  async function fits(limits: StageInput['limits']): Promise<void> {
    using place = jail();
    const staged = await stage(place, { tar, manifest, ...(limits === undefined ? {} : { limits }) });
    assert.equal(staged.manifest.files.length, files.length);
  }

  const treeBytes = 5 + 1500 + 4;
  const table = [
    ['maxEntries', files.length],
    ['maxFileBytes', 1500],
    ['maxTreeBytes', treeBytes],
    ['maxManifestBytes', manifest.length],
  ] as const;
  for (const [name, value] of table) {
    it(`apply ${name}, to the byte`, async () => {
      await fits({ [name]: value });
      await assertRefused({ tar, manifest, limits: { [name]: value - 1 } }, 'ARCHIVE_LIMIT');
    });
  }

  it('refuse a bomb before a file is written', async () => {
    const bomb = [{ path: 'zeros', content: Buffer.alloc(5_000_000) }];
    const packed = pack(bundleTar(bomb));
    assert.ok(packed.length < 5000);
    await assertRefused({ tar: bundleTar(bomb), manifest: manifestOf(bomb) }, 'ARCHIVE_LIMIT');
  });

  it('refuse a bomb of many files', longCase, async () => {
    const bomb = Array.from({ length: 300 }, (_, index) => ({
      path: `f${1000 + index}`,
      content: Buffer.alloc(20_000),
    }));
    const input = { tar: bundleTar(bomb), manifest: manifestOf(bomb), limits: { maxRatio: 20 } };
    await assertRefused(input, 'ARCHIVE_LIMIT');
  });

  it('refuse a bomb after the end without unpacking it', async () => {
    const archive = pack(Buffer.concat([tar, Buffer.alloc(200_000_000)]));
    await assertRefused({ tar, manifest, archive }, 'ARCHIVE_MALFORMED');
  });

  it('accept a small tree with any compression ratio', async () => {
    using place = jail();
    const small = [{ path: 'zeros', content: Buffer.alloc(900_000) }];
    const { treePath } = await stage(place, { tar: bundleTar(small), manifest: manifestOf(small) });
    assert.ok(treePath);
  });
});
