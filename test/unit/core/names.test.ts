// Names, digests and durations: what their one parser takes, what it refuses, and that nothing slips between.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  digest12,
  digestFromHex,
  digestHex,
  durationPattern,
  isName,
  namePattern,
  parseDuration,
  targetPath,
} from '../../../src/core/names.js';

const hex = fc.stringMatching(/^[0-9a-f]{64}$/);

describe('isName', () => {
  it('accepts the names of bundles, channels and groups', () => {
    for (const name of ['a', '0', 'dns-edge', 'v1.2_x', 'a'.repeat(64)])
      assert.equal(isName(name), true, name);
  });

  it('rejects a name that could leave a directory, be hidden in it, or appear as another name', () => {
    const bad = [
      '',
      '.',
      '..',
      '.a',
      '-a',
      '_a',
      'A',
      'a/b',
      'a\\b',
      'a\0',
      'a b',
      'ä',
      'a\n',
      'a'.repeat(65),
    ];
    for (const name of [...bad, 7, null, undefined, ['a']]) assert.equal(isName(name), false, String(name));
  });

  it('accepts only one harmless segment of a path', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ maxLength: 70 }), fc.stringMatching(/^[a-z0-9._/-]{0,66}$/)),
        (text) => {
          fc.pre(isName(text));
          assert.ok(!text.includes('/') && !text.startsWith('.') && text.length <= 64);
          assert.equal(targetPath(text, 'stable').split('/').length, 2);
        },
      ),
    );
  });

  it('agrees with the pattern that the schema uses', () => {
    const pattern = new RegExp(namePattern);
    fc.assert(fc.property(fc.string(), (text) => assert.equal(isName(text), pattern.test(text))));
  });
});

describe('digests', () => {
  it('are converted from 64 lower-case hex digits and back', () => {
    fc.assert(
      fc.property(hex, (text) => {
        const digest = digestFromHex(text);
        assert.ok(digest !== undefined);
        assert.equal(digest, `sha256:${text}`);
        assert.equal(digestHex(digest), text);
        assert.equal(digest12(digest), text.slice(0, 12));
      }),
    );
  });

  it('are undefined for any other text', () => {
    const good = 'a'.repeat(64);
    const bad = [
      good.slice(1),
      `${good}a`,
      `${good}\n`,
      good.toUpperCase(),
      `sha256:${good}`,
      '',
      7,
      null,
      {},
    ];
    for (const value of bad) assert.equal(digestFromHex(value), undefined, String(value));
  });
});

describe('parseDuration', () => {
  const units: readonly [string, number][] = [
    ['ms', 1],
    ['s', 1000],
    ['m', 60_000],
    ['h', 3_600_000],
    ['d', 86_400_000],
  ];

  it('multiplies by the unit', () => {
    fc.assert(
      fc.property(fc.nat(99_999_999), fc.constantFrom(...units), (count, [unit, unitMs]) => {
        assert.equal(parseDuration(`${count}${unit}`), count * unitMs);
        assert.ok(Number.isSafeInteger(count * unitMs));
      }),
    );
  });

  it('rejects any other text', () => {
    const bad = [
      '',
      '5',
      'm',
      '5 m',
      '5M',
      '-5m',
      '+5m',
      '1.5h',
      '1h30m',
      '5m\n',
      '0x5m',
      '123456789s',
      '5w',
      '٥m',
    ];
    for (const text of bad) assert.equal(parseDuration(text), undefined, text);
  });

  it('agrees with the pattern that the schema uses', () => {
    const pattern = new RegExp(durationPattern);
    const texts = fc.oneof(fc.string(), fc.stringMatching(/^[0-9]{0,11}[a-z]{0,3}$/));
    fc.assert(
      fc.property(texts, (text) => assert.equal(parseDuration(text) !== undefined, pattern.test(text))),
    );
  });
});
