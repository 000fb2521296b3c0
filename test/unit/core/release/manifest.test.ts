import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { orUndefined, type WritError } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { type Digest, digestHex } from '../../../../src/core/names.js';
import { judgeEntryPath } from '../../../../src/core/release/entry-rules.js';
import {
  diffManifests,
  encodeManifest,
  type Manifest,
  type ManifestFile,
  manifestDigest,
  parseManifest,
} from '../../../../src/core/release/manifest.js';
import { canonicalBytes } from '../../../../src/core/text/canonical-json.js';

const limits = defaultArchiveLimits;

function file(path: string, content = path, executable = false): ManifestFile {
  const digest = `sha256:${createHash('sha256').update(content).digest('hex')}` as Digest;
  return { path, sizeBytes: Buffer.byteLength(content), digest, executable };
}

function rows(manifest: Manifest): Record<string, unknown>[] {
  return manifest.files.map(({ path, sizeBytes, digest, executable }) => ({
    executable,
    path,
    sha256: digestHex(digest),
    size: sizeBytes,
  }));
}

const sample: Manifest = { files: [file('a'), file('b "quoted"', 'x', true), file('views/eu.yaml')] };

describe('encodeManifest', () => {
  it('returns the canonical JSON of the format', () => {
    const expected = canonicalBytes({ files: rows(sample), writ: 1 });
    assert.equal(encodeManifest(sample).toString(), expected.toString());
  });
  it('sorts by path bytes, not by UTF-16 units', () => {
    const shuffled = {
      files: [file('\u{1f600}'), file('\uffee'), file('b'), file('B'), file('a/b'), file('a.')],
    };
    const order = JSON.parse(encodeManifest(shuffled).toString()).files.map(
      (row: { path: string }) => row.path,
    );
    assert.deepEqual(order, ['B', 'a.', 'a/b', 'b', '\uffee', '\u{1f600}']);
  });
});

describe('parseManifest', () => {
  it('parses the output of encodeManifest', () => {
    assert.deepEqual(parseManifest(encodeManifest(sample), limits), sample);
    assert.deepEqual(parseManifest(encodeManifest({ files: [] }), limits), { files: [] });
  });

  const [first] = rows(sample);
  const malformed: Readonly<Record<string, string | Uint8Array>> = {
    'bytes that are no JSON': 'files',
    'bytes that are no UTF-8': Uint8Array.from([0x22, 0xff, 0x22]),
    'a byte order mark': `\ufeff${encodeManifest(sample).toString()}`,
    'white space': JSON.stringify({ files: rows(sample), writ: 1 }, null, 1),
    'a trailing newline': `${encodeManifest(sample).toString()}\n`,
    'another version': '{"files":[],"writ":2}',
    'no version': '{"files":[]}',
    'no list': '{"files":{},"writ":1}',
    null: 'null',
    'an unknown member': '{"files":[],"more":1,"writ":1}',
    'a member twice': '{"files":[],"files":[],"writ":1}',
    'an unknown member of a file': text([{ ...first, mode: 1 }]),
    'a file that is null': '{"files":[null],"writ":1}',
    'files out of order': text([...rows(sample)].reverse()),
    'a file twice': text([first, first]),
    'a path out of the tree': text([{ ...first, path: '../a' }]),
    'the path of the manifest': text([{ ...first, path: '.writ-manifest.json' }]),
    'a path that is a number': text([{ ...first, path: 1 }]),
    'an upper-case digest': text([{ ...first, sha256: 'A'.repeat(64) }]),
    'a negative size': text([{ ...first, size: -1 }]),
    'another form of a number': encodeManifest(sample).toString().replace('"size":1}', '"size":1.0}'),
    'a number with zeros in front': encodeManifest(sample).toString().replace('"size":1}', '"size":01}'),
    'a comma too many': encodeManifest(sample).toString().replace('}],"writ"', '},],"writ"'),
    'no comma': encodeManifest(sample).toString().replace('},{', '}{'),
    'a path with an escape of JSON': encodeManifest(sample).toString().replace('"a"', '"\\u0061"'),
    'a size as text': text([{ ...first, size: '1' }]),
    'an executable bit that is no boolean': text([{ ...first, executable: 1 }]),
    twins: text(rows({ files: [file('A'), file('a')] })),
  };
  for (const [name, bytes] of Object.entries(malformed)) {
    it(`refuses ${name}`, () => {
      assert.throws(() => parseManifest(Buffer.from(bytes), limits), { code: 'MANIFEST_MALFORMED' });
    });
  }

  const small = { ...limits, maxEntries: 2 };
  const bounds = {
    maxEntries: { ...limits, maxEntries: 2 },
    maxFileBytes: { ...limits, maxFileBytes: 12 },
    maxTreeBytes: { ...limits, maxTreeBytes: 14 },
    maxManifestBytes: { ...limits, maxManifestBytes: 100 },
  };
  for (const [name, tight] of Object.entries(bounds)) {
    it(`is bounded by ${name}`, () => {
      assert.throws(() => parseManifest(encodeManifest(sample), tight), { code: 'ARCHIVE_LIMIT' });
    });
  }
  it('accepts exactly the limit', () => {
    const two = { files: sample.files.slice(0, 2) };
    assert.deepEqual(parseManifest(encodeManifest(two), small), two);
  });
});

describe('a manifest with a changed byte', () => {
  it('is rejected, or is the canonical form of its content', () => {
    const whole = encodeManifest(sample);
    const bend = fc.tuple(
      fc.nat(whole.length),
      fc.nat(8),
      fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('"', '\\"', '},{"', ',', '}', '\\u0061')),
    );
    fc.assert(
      fc.property(bend, ([at, removed, text]) => {
        const bent = Buffer.concat([whole.subarray(0, at), Buffer.from(text), whole.subarray(at + removed)]);
        const read = orUndefined(() => parseManifest(bent, limits));
        if (read !== undefined) assert.deepEqual(encodeManifest(read), bent);
      }),
      { numRuns: 3000 },
    );
  });

  it('has its version in the error if only that is wrong', () => {
    const later = Buffer.from('{"files":[],"writ":2}');
    assert.throws(
      () => parseManifest(later, limits),
      (error: WritError) => error.facts['actual'] === 2,
    );
  });

  it('is parsed only up to its first error', () => {
    const one = encodeManifest(sample).toString();
    const judged: string[] = [];
    const judge: typeof judgeEntryPath = (path, given) => {
      judged.push(Buffer.from(path).toString());
      return judgeEntryPath(path, given);
    };
    const bent = one.replace('"executable":true', '"executable":null');
    assert.throws(() => parseManifest(Buffer.from(bent), limits, judge), { code: 'MANIFEST_MALFORMED' });
    assert.deepEqual(judged, ['a']);
  });

  it('is parsed only up to the limit of files', () => {
    const judged: string[] = [];
    const judge: typeof judgeEntryPath = (path, given) => {
      judged.push(Buffer.from(path).toString());
      return judgeEntryPath(path, given);
    };
    assert.throws(() => parseManifest(encodeManifest(sample), { ...limits, maxEntries: 2 }, judge), {
      code: 'ARCHIVE_LIMIT',
    });
    assert.equal(judged.length, 2);
  });
});

describe('manifestDigest', () => {
  it('is the SHA-256 of the bytes', () => {
    assert.equal(
      manifestDigest(Buffer.from('abc')),
      'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  });
});

describe('diffManifests', () => {
  it('distinguishes added, removed and changed files', () => {
    const before = { files: [file('gone'), file('mode'), file('same'), file('text', '1')] };
    const after = { files: [file('mode', 'mode', true), file('new'), file('same'), file('text', '2')] };
    assert.deepEqual(diffManifests(before, after), {
      added: ['new'],
      removed: ['gone'],
      changed: ['mode', 'text'],
    });
  });
});

function text(files: readonly unknown[]): string {
  return canonicalBytes({ files, writ: 1 }).toString();
}
