// Archives that differ from their manifest, and manifests that differ from the signed one.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { manifestName } from '../../../../src/core/release/manifest.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { assertRefused, jail, snapshot, stage } from '../../../kit/host/stage-harness.js';
import {
  type BundleFile,
  bundleTar,
  endOfArchive,
  fileEntry,
  manifestOf,
  pack,
  tarEntry,
} from '../../../kit/repository/archive-builder.js';

const a: BundleFile = { path: 'a', content: 'alpha' };
const b: BundleFile = { path: 'd/b', content: 'beta', executable: true };
const manifest = manifestOf([a, b]);
const head = tarEntry({ path: manifestName, content: manifest });

function archive(...entries: readonly Buffer[]): { tar: Buffer; manifest: Buffer } {
  return { tar: Buffer.concat([...entries, endOfArchive]), manifest };
}

describe('an archive that differs from its manifest', () => {
  const cases: Readonly<Record<string, readonly Buffer[]>> = {
    'a missing file': [head, fileEntry(a)],
    'a missing first file': [head, fileEntry(b)],
    'no file at all': [head],
    'an extra file': [head, fileEntry(a), fileEntry(b), fileEntry({ path: 'e', content: '' })],
    'a file twice': [head, fileEntry(a), fileEntry(a), fileEntry(b)],
    'the last file twice': [head, fileEntry(a), fileEntry(b), fileEntry(b)],
    'files out of order': [head, fileEntry(b), fileEntry(a)],
    'other content of the same size': [head, fileEntry({ ...a, content: 'ALPHA' }), fileEntry(b)],
    'a shorter file': [head, fileEntry({ ...a, content: 'alph' }), fileEntry(b)],
    'a longer file': [head, fileEntry({ ...a, content: 'alpha!' }), fileEntry(b)],
    'right content under another name': [head, fileEntry({ ...a, path: 'c' }), fileEntry(b)],
    'contents exchanged': [head, fileEntry({ ...a, content: 'beta' }), fileEntry({ ...b, content: 'alpha' })],
    'an executable bit too many': [head, fileEntry({ ...a, executable: true }), fileEntry(b)],
    'an executable bit too few': [head, fileEntry(a), fileEntry({ ...b, executable: false })],
    'a file where the manifest has a directory': [head, fileEntry(a), fileEntry({ path: 'd', content: '' })],
  };
  for (const [name, entries] of Object.entries(cases)) {
    it(`refuses ${name}`, async () => {
      await assertRefused(archive(...entries), 'MANIFEST_MISMATCH');
    });
  }
});

describe('the manifest in the archive', () => {
  it('is required', async () => {
    await assertRefused(archive(), 'ARCHIVE_MALFORMED');
    await assertRefused(archive(fileEntry(a), fileEntry(b)), 'ARCHIVE_MALFORMED');
  });

  it('is required as the first entry', async () => {
    await assertRefused(archive(fileEntry(a), head, fileEntry(b)), 'ARCHIVE_MALFORMED');
  });

  it('is refused without the signed digest, although the archive matches it', async () => {
    const other = { ...a, content: 'OTHER' };
    await assertRefused({ tar: bundleTar([other, b]), manifest }, 'MANIFEST_DIGEST');
  });

  it('is refused without the signed length', async () => {
    await assertRefused({ tar: bundleTar([a]), manifest }, 'MANIFEST_DIGEST');
  });

  it('is not parsed before its digest is verified', async () => {
    const garbage = Buffer.alloc(manifest.length, '[');
    const tar = Buffer.concat([tarEntry({ path: manifestName, content: garbage }), endOfArchive]);
    await assertRefused({ tar, manifest }, 'MANIFEST_DIGEST');
  });

  const malformed: Readonly<Record<string, string>> = {
    'no JSON': 'policy',
    'a byte order mark': `\ufeff${manifest.toString()}`,
    'another format version': '{"files":[],"writ":2}',
    'a duplicate member': '{"files":[],"files":[],"writ":1}',
    'white space': '{"files": [],"writ":1}',
    'an unknown member': '{"files":[],"writ":1,"x":1}',
    'a prototype': '{"__proto__":{},"files":[],"writ":1}',
    'deep nesting': `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
    'a huge size': manifest.toString().replace('"size":5', '"size":1e999'),
    'a negative size': manifest.toString().replace('"size":5', '"size":-5'),
  };
  for (const [name, text] of Object.entries(malformed)) {
    it(`is refused with ${name}, although it is signed`, async () => {
      const bytes = Buffer.from(text);
      const tar = Buffer.concat([tarEntry({ path: manifestName, content: bytes }), endOfArchive]);
      await assertRefused({ tar, manifest: bytes }, 'MANIFEST_MALFORMED');
    });
  }
});

describe('one flipped byte', longCase, () => {
  it('is refused, or changes nothing in the tree', async () => {
    const tar = bundleTar([a, b]);
    using whole = jail();
    const honest = snapshotOf((await stage(whole, { tar, manifest })).treePath);
    const flip = fc.tuple(fc.nat(tar.length - 1), fc.integer({ min: 1, max: 255 }));
    await fc.assert(
      fc.asyncProperty(flip, async ([at, bits]) => {
        const changed = Buffer.from(tar);
        changed[at] = (changed[at] ?? 0) ^ bits;
        using place = jail();
        const before = snapshot(place.dir.path, { without: place.staging });
        const refusal = await stage(place, { tar: changed, manifest, archive: pack(changed) }).then(
          ({ treePath }) => assert.deepEqual(snapshotOf(treePath), honest),
          (error: { code: string }) => error,
        );
        if (refusal)
          assert.match(refusal.code, /^(ARCHIVE_MALFORMED|ENTRY_REFUSED|MANIFEST_\w+|ARCHIVE_LIMIT)$/);
        assert.deepEqual(snapshot(place.dir.path, { without: place.staging }), before);
      }),
      { numRuns: 300 },
    );
  });
});

function snapshotOf(treePath: string): string[] {
  return snapshot(treePath).map((line) => line.slice(treePath.length));
}
