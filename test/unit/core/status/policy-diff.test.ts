import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import {
  type DiffSide,
  diffPolicies,
  maxListedFiles,
  maxTextBytes,
} from '../../../../src/core/status/policy-diff.js';

type Files = Readonly<Record<string, string | Buffer>>;

const digestOf = (bytes: Buffer): Digest =>
  digestFromHex(createHash('sha256').update(bytes).digest('hex')) as Digest;

function side(serial: number, files: Files, executable = false): DiffSide {
  const entries = Object.entries(files).map(([path, content]) => {
    const bytes = Buffer.from(content);
    return { path, sizeBytes: bytes.length, digest: digestOf(bytes), executable };
  });
  return { serial, revision: `r${serial}`, manifest: { files: entries } };
}

const reader = (files: Files) => (_bundle: string, path: string) => {
  const content = files[path];
  return content === undefined ? undefined : Buffer.from(content);
};

function diff(before: Files, after: Files) {
  return diffPolicies({
    from: new Map([['dns', side(1, before)]]),
    to: new Map([['dns', side(2, after)]]),
    read: { from: reader(before), to: reader(after) },
  });
}

describe('the difference of two policies', () => {
  it('is empty for equal policies', () => {
    const one = new Map([['dns', side(1, { a: '1' })]]);
    assert.deepEqual(diffPolicies({ from: one, to: one }), []);
  });

  it('names added, removed and changed files, with sizes and texts', () => {
    const [bundle, ...more] = diff({ a: 'x\n', b: 'old\n' }, { b: 'new one\n', c: '' });
    assert.deepEqual(more, []);
    assert.deepEqual(bundle, {
      bundle: 'dns',
      fromSerial: 1,
      toSerial: 2,
      toRevision: 'r2',
      added: 1,
      removed: 1,
      changed: 1,
      files: [
        { path: 'a', kind: 'removed', fromBytes: 2 },
        {
          path: 'b',
          kind: 'changed',
          fromBytes: 4,
          toBytes: 8,
          text: { lines: ['@@ -1 +1 @@', '-old', '+new one'], leftOut: 0 },
        },
        { path: 'c', kind: 'added', toBytes: 0 },
      ],
    });
  });

  it('names the reason for a missing text', () => {
    const large = 'x'.repeat(maxTextBytes + 1);
    const many = (word: string): string => `${word}\n`.repeat(1).concat(`${word}1\n`.repeat(400));
    const [bundle] = diff(
      { binary: Buffer.from([0, 1]), latin: Buffer.from([0xe4]), large, other: many('a') },
      { binary: Buffer.from([0, 2]), latin: Buffer.from([0xf6]), large: `${large}y`, other: many('b') },
    );
    assert.deepEqual(
      bundle?.files.map((one) => [one.path, one.noText]),
      [
        ['binary', 'binary'],
        ['large', 'too large'],
        ['latin', 'binary'],
        ['other', 'too different'],
      ],
    );
  });

  it('omits texts after a bound, also if no text can be shown', () => {
    const rewritten = (word: string): Files =>
      Object.fromEntries(
        Array.from({ length: 7 }, (_, index) => [`f${index}`, `${word}\n`.repeat(700).concat(`${index}`)]),
      );
    const [bundle] = diff(rewritten('a'), rewritten('b'));
    assert.deepEqual(
      bundle?.files.map((one) => one.noText),
      [...Array(5).fill('too different'), 'no room left', 'no room left'],
    );
  });

  it('omits a text that differs from what was signed', () => {
    const [bundle] = diffPolicies({
      from: new Map([['dns', side(1, { a: 'one\n' })]]),
      to: new Map([['dns', side(2, { a: 'two\n' })]]),
      read: { from: () => undefined, to: reader({ a: 'two\n' }) },
    });
    assert.equal(bundle?.files[0]?.noText, 'damaged on disk');
  });

  it('names a file that became executable', () => {
    const [bundle] = diffPolicies({
      from: new Map([['dns', side(1, { a: '' })]]),
      to: new Map([['dns', side(2, { a: '' }, true)]]),
    });
    assert.deepEqual(bundle?.files, [
      { path: 'a', kind: 'changed', fromBytes: 0, toBytes: 0, only: 'executable' },
    ]);
  });

  it('contains added and removed bundles, and those with only a new serial', () => {
    const bundles = diffPolicies({
      from: new Map([
        ['gone', side(1, { a: '' })],
        ['same', side(1, { a: '' })],
      ]),
      to: new Map([
        ['came', side(5, { a: '' })],
        ['same', side(2, { a: '' })],
      ]),
    });
    assert.deepEqual(
      bundles.map((one) => [one.bundle, one.fromSerial, one.toSerial, one.files.length]),
      [
        ['came', undefined, 5, 1],
        ['gone', 1, undefined, 1],
        ['same', 1, 2, 0],
      ],
    );
  });

  it('lists a bounded number of files, and counts all of them', () => {
    const many = Object.fromEntries(
      Array.from({ length: maxListedFiles + 5 }, (_, index) => [`f${index}`, '']),
    );
    const [bundle] = diff({}, many);
    assert.equal(bundle?.files.length, maxListedFiles);
    assert.equal(bundle?.added, maxListedFiles + 5);
  });
});
