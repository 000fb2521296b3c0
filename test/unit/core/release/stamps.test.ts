import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Digest } from '../../../../src/core/names.js';
import {
  encodeReleaseInfo,
  parseReleaseInfo,
  type ReleaseInfo,
} from '../../../../src/core/release/release.js';
import { maxStamps, parseStamps, sourceName, unstamped } from '../../../../src/core/release/stamps.js';

const digestOf = (digit: string): Digest => `sha256:${digit.repeat(64)}` as Digest;
const release: ReleaseInfo = {
  bundle: 'dns-edge',
  channel: 'stable',
  serial: 7,
  revision: '',
  createdAtMs: 0,
  manifest: { digest: digestOf('a'), length: 100 },
  withdrawn: [],
  stamped: {
    source: digestOf('b'),
    stamps: [
      {
        ...{ path: 'block.rpz', length: 9, digest: digestOf('c') },
        at: [
          { offset: 3, mark: 'source' },
          { offset: 40, mark: 'serial' },
        ],
      },
    ],
  },
};
const row = { path: 'block.rpz', length: 9, sha256: 'c'.repeat(64), serials: [40], sources: [3] };

describe('stamps', () => {
  it('are signed in addition to the manifest, and parsed as they were encoded', () => {
    const writ = encodeReleaseInfo(release);
    assert.deepEqual([writ['source'], writ['stamps']], ['b'.repeat(64), [row]]);
    assert.deepEqual(parseReleaseInfo({ writ }, 'x'), release);
    const { stamped: _, ...plain } = release;
    assert.deepEqual(parseReleaseInfo({ writ: encodeReleaseInfo(plain) }, 'x'), plain);
    assert.equal('stamps' in encodeReleaseInfo(plain), false);
  });

  for (const [name, source, stamps] of [
    ['a source without stamps', 'b'.repeat(64), undefined],
    ['stamps without a source', undefined, [row]],
    ['no stamp at all', 'b'.repeat(64), []],
    ['a path twice', 'b'.repeat(64), [row, row]],
    ['no path', 'b'.repeat(64), [{ ...row, path: '' }]],
    ['a path that is too long', 'b'.repeat(64), [{ ...row, path: 'x'.repeat(4097) }]],
    ['no digest', 'b'.repeat(64), [{ ...row, sha256: 'c' }]],
    ['no length', 'b'.repeat(64), [{ ...row, length: 0 }]],
    ['no places', 'b'.repeat(64), [{ ...row, serials: [], sources: [] }]],
    ['places that are no list', 'b'.repeat(64), [{ ...row, serials: 40 }]],
    ['a place that is no number', 'b'.repeat(64), [{ ...row, serials: ['40'] }]],
    ['a place before the file', 'b'.repeat(64), [{ ...row, serials: [-1] }]],
    ['one place twice', 'b'.repeat(64), [{ ...row, serials: [3] }]],
    [
      'too many places',
      'b'.repeat(64),
      [{ ...row, serials: Array.from({ length: 1001 }, (_, at) => 50 + at) }],
    ],
    ['something else', 'b'.repeat(64), [null]],
    [
      'too many',
      'b'.repeat(64),
      Array.from({ length: maxStamps + 1 }, (_, at) => ({ ...row, path: `f${at}` })),
    ],
  ] as const) {
    it(`that are ${name} make an entry malformed`, () => {
      assert.equal(parseStamps(source, stamps), undefined);
      const writ = { ...encodeReleaseInfo(release), source, stamps };
      assert.throws(() => parseReleaseInfo({ writ }, 'x'), { code: 'TARGET_MALFORMED' });
    });
  }

  it('are parsed up to their limit', () => {
    const rows = Array.from({ length: maxStamps }, (_, at) => ({ ...row, path: `f${at}` }));
    assert.equal(parseStamps('b'.repeat(64), rows)?.stamps.length, maxStamps);
  });

  it('restore the manifest of the tree before, and change no other file', () => {
    const file = { path: 'block.rpz', sizeBytes: 12, digest: digestOf('d'), executable: true };
    const other = { path: 'other', sizeBytes: 1, digest: digestOf('e'), executable: false };
    assert.deepEqual(unstamped({ files: [file, other] }, release.stamped?.stamps).files, [
      { ...file, sizeBytes: 9, digest: digestOf('c') },
      other,
    ]);
  });

  it('name a tree by its manifest before the stamps, and a tree without stamps by its manifest', () => {
    assert.equal(sourceName(release), 'b'.repeat(16));
    const { stamped: _, ...plain } = release;
    assert.equal(sourceName(plain), 'a'.repeat(16));
  });
});
