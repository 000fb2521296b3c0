import assert from 'node:assert/strict';
import { join, normalize, relative } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import {
  createPathSet,
  type EntryRule,
  judgeEntryPath,
  judgeKeptPath,
} from '../../../../src/core/release/entry-rules.js';

const limits = defaultArchiveLimits;
const judge = (path: string | Uint8Array) => judgeEntryPath(path, limits);

describe('judgeEntryPath accepts', () => {
  const accepted = [
    'a',
    '.gitignore',
    '.well-known/policy.json',
    'views/eu.yaml',
    'a/b/c..d/e',
    '..a/...b',
    'with space/and "quotes" $HOME;x',
    'zöne/日本語/😀',
    'x'.repeat(255),
    'sub/.writ-manifest.json',
    '__proto__/constructor',
    Array.from({ length: 32 }, () => 'd').join('/'),
  ];
  for (const path of accepted) {
    it(JSON.stringify(path.slice(0, 40)), () => {
      assert.deepEqual(judge(path), { kind: 'accepted', path });
      assert.deepEqual(judge(Buffer.from(path)), { kind: 'accepted', path });
    });
  }
});

describe('judgeEntryPath refuses', () => {
  const refused: readonly (readonly [string, EntryRule])[] = [
    ['', 'empty'],
    ['/', 'absolute'],
    ['/etc/passwd', 'absolute'],
    ['//server/share', 'absolute'],
    ['..', 'dot-component'],
    ['../a', 'dot-component'],
    ['a/../../b', 'dot-component'],
    ['a/..', 'dot-component'],
    ['.', 'dot-component'],
    ['./a', 'dot-component'],
    ['a/./b', 'dot-component'],
    ['a//b', 'empty-component'],
    ['a/', 'trailing-slash'],
    ['a\\b', 'backslash'],
    ['..\\a', 'backslash'],
    ['C:x', 'drive-letter'],
    ['C:../x', 'drive-letter'],
    ['a\0b', 'control-character'],
    ['a\nb', 'control-character'],
    ['a\u001b[31m', 'control-character'],
    ['a\u0085b', 'control-character'],
    ['a\u202etxt.exe', 'character'],
    ['a\u2066b', 'character'],
    ['a\u200bb', 'character'],
    ['a\u2028b', 'character'],
    ['\ufeffa', 'character'],
    ['a\ue000', 'character'],
    ['b\u3164.txt', 'invisible'],
    ['b\uffa0.txt', 'invisible'],
    ['b\ufe0f.txt', 'invisible'],
    ['b\u034f.txt', 'invisible'],
    ['b\u115f', 'invisible'],
    ['b\u17b4', 'invisible'],
    ['b\u{e0100}', 'invisible'],
    ['b\u{e0041}', 'character'],
    ['\ufdfa'.repeat(16), 'name-too-long'],
    ['a\ufffdb', 'not-utf8'],
    ['a\ud800b', 'not-utf8'],
    ['e\u0301', 'not-normalised'],
    ['a.', 'trailing-dot-or-space'],
    ['a /b', 'trailing-dot-or-space'],
    ['...', 'trailing-dot-or-space'],
    ['x'.repeat(256), 'name-too-long'],
    ['ö'.repeat(128), 'name-too-long'],
    [Array.from({ length: 6 }, () => 'x'.repeat(200)).join('/'), 'path-too-long'],
    [`${'ö'.repeat(100)}/`.repeat(6), 'path-too-long'],
    [Array.from({ length: 33 }, () => 'd').join('/'), 'too-deep'],
    ['.writ-manifest.json', 'reserved-name'],
    ['.Writ-Manifest.JSON', 'reserved-name'],
    ['.writ-manifest.json/a', 'reserved-name'],
  ];
  for (const [path, rule] of refused) {
    it(`${JSON.stringify(path.slice(0, 40))}: ${rule}`, () => {
      const verdict = judge(path);
      assert.equal(verdict.kind === 'refused' && verdict.rule, rule);
    });
  }

  it('bytes that are not UTF-8: invalid, overlong, surrogate', () => {
    for (const bytes of [
      [0x61, 0xff],
      [0xc0, 0xaf],
      [0xed, 0xa0, 0x80],
    ]) {
      const verdict = judge(Uint8Array.from(bytes));
      assert.equal(verdict.kind === 'refused' && verdict.rule, 'not-utf8');
    }
  });

  it('a path of megabytes without decoding it', () => {
    const verdict = judge(Buffer.alloc(10_000_000, 0xff));
    assert.equal(verdict.kind === 'refused' && verdict.rule, 'path-too-long');
  });
});

describe('judgeKeptPath', () => {
  it('accepts only invisible characters in addition, in a policy that older versions accepted', () => {
    assert.deepEqual(judgeKeptPath('b\ufe0f', limits), { kind: 'accepted', path: 'b\ufe0f' });
    assert.equal(judgeKeptPath('b\u200b', limits).kind, 'refused');
    assert.equal(judgeKeptPath('../b', limits).kind, 'refused');
  });
});

describe('any accepted path', () => {
  const nasty = fc.array(
    fc.oneof(
      fc.constantFrom('/', '..', '.', '\\', '\0', '//', 'C:', '~', ' ', 'a', '\u0301', 'ﬁ', '%2e', '..;'),
      fc.string({ unit: 'binary', maxLength: 4 }),
    ),
    { maxLength: 12 },
  );

  it('joined to a jail stays inside it and is its own normal form', () => {
    fc.assert(
      fc.property(nasty, (parts) => {
        const verdict = judge(parts.join(''));
        if (verdict.kind === 'refused') return;
        const joined = join('/jail', verdict.path);
        assert.ok(joined.startsWith('/jail/'));
        assert.equal(relative('/jail', joined), verdict.path);
        assert.equal(normalize(verdict.path), verdict.path);
        assert.equal(verdict.path.normalize('NFC'), verdict.path);
      }),
      { numRuns: 5000 },
    );
  });

  it('has the same verdict as text and as bytes', () => {
    fc.assert(
      fc.property(nasty, (parts) => {
        const path = parts.join('');
        // UTF-8 cannot represent lone surrogates: encoding converts them to U+FFFD, which is rejected too.
        assert.equal(judge(path).kind, judge(Buffer.from(path)).kind);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('createPathSet', () => {
  const rulesOf = (...paths: readonly string[]): (EntryRule | 'ok')[] => {
    const set = createPathSet(limits);
    return paths.map((path) => {
      const verdict = set.add(path);
      return verdict.kind === 'accepted' ? 'ok' : verdict.rule;
    });
  };

  it('accepts files in one directory and in nested directories', () => {
    assert.deepEqual(rulesOf('a', 'b/c', 'b/d', 'b/e/f'), ['ok', 'ok', 'ok', 'ok']);
  });
  it('rejects names that differ only in invisible characters', () => {
    assert.deepEqual(rulesOf('a/b\u3164.txt', 'a/b\ufe0f.txt'), ['ok', 'twin']);
    assert.deepEqual(rulesOf('b\u115f/c', 'b/d'), ['ok', 'twin']);
  });
  it('rejects the same path twice', () => {
    assert.deepEqual(rulesOf('b/c', 'b/c'), ['ok', 'duplicate']);
  });
  it('rejects a file in place of a directory, and the reverse', () => {
    assert.deepEqual(rulesOf('a/b', 'a'), ['ok', 'file-over-directory']);
    assert.deepEqual(rulesOf('a', 'a/b/c'), ['ok', 'directory-over-file']);
  });
  it('rejects paths that differ only by case, compatibility or folding, of files and of directories', () => {
    assert.deepEqual(rulesOf('Zone', 'zone'), ['ok', 'twin']);
    assert.deepEqual(rulesOf('straße', 'STRASSE'), ['ok', 'twin']);
    assert.deepEqual(rulesOf('ﬁle', 'file'), ['ok', 'twin']);
    assert.deepEqual(rulesOf('A/x', 'a/y'), ['ok', 'twin']);
    assert.deepEqual(rulesOf('A', 'a/y'), ['ok', 'twin']);
    assert.deepEqual(rulesOf('\u212b', '\u00c5'), ['ok', 'twin']);
  });
  it('distinguishes long paths by their whole text, and finds their folded duplicates', () => {
    const long = 'rules/'.repeat(20);
    assert.deepEqual(rulesOf(`${long}a`, `${long}b`), ['ok', 'ok']);
    assert.deepEqual(rulesOf(`${long}a`, `${long}A`), ['ok', 'twin']);
  });
  it('bounds the number of directories', () => {
    const set = createPathSet({ ...limits, maxEntries: 3 });
    assert.equal(set.add('a/b/c/f').kind, 'accepted');
    const verdict = set.add('a/b/d/f');
    assert.equal(verdict.kind === 'refused' && verdict.rule, 'too-many-directories');
  });
  it('never holds two paths that a case-folding file system would merge', () => {
    const name = fc.constantFrom('a', 'A', 'b', 'ß', 'ss', 'SS', 'k', '\u212a');
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));
    fc.assert(
      fc.property(fc.array(path, { maxLength: 20 }), (paths) => {
        const set = createPathSet(limits);
        const kept = paths.filter((one) => set.add(one).kind === 'accepted');
        const folded = kept.map((one) => one.normalize('NFKC').toUpperCase());
        assert.equal(new Set(folded).size, kept.length);
        for (const one of kept) assert.ok(!kept.some((other) => other.startsWith(`${one}/`)));
      }),
    );
  });
});
