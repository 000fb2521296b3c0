// Sequences of roots: which of them a host follows, by the keys each lists and the keys that signed it. Keys are
// letters; `abc/2 by ab` lists a, b and c with threshold 2, and is signed by a and b.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultMetadataLimits } from '../../../../src/core/limits.js';
import {
  makeKey,
  type RepositorySimulator,
  type SimulatedKey,
} from '../../../kit/repository/repository-simulator.js';
import { type TrustBench, trustBench } from '../../../kit/trust/trust-bench.js';

interface Sequence {
  readonly name: string;
  /** The shipped root, then those that the server has; a refused one is always the last. */
  readonly roots: readonly string[];
}

/** By none of the keys that are asked for, in place of too few. */
interface Refused extends Sequence {
  readonly code?: 'SIGNATURE_WRONG_KEY';
}

const followed: readonly Sequence[] = [
  { name: 'one key of one gives way to another', roots: ['a/1 by a', 'b/1 by ab', 'b/1 by b'] },
  { name: 'one key of one stays, and strangers sign along', roots: ['a/1 by a', 'a/1 by xay'] },
  {
    name: 'any three of five',
    roots: ['abcde/3 by ace', 'abcde/3 by aeb', 'abcde/3 by abd', 'abcde/3 by cde'],
  },
  { name: 'one of five leaves, the rest carries it', roots: ['abcde/3 by ace', 'abdef/3 by aeb'] },
  {
    name: 'one of five leaves and signs its farewell',
    roots: ['abcde/3 by ace', 'abdef/3 by acef', 'abdef/3 by aef'],
  },
  { name: 'all five leave at once', roots: ['abcde/3 by ace', 'fghij/3 by acefgh', 'fghij/3 by fgh'] },
  { name: 'the threshold rises', roots: ['abc/1 by a', 'abc/2 by ab'] },
  { name: 'the threshold rises with a second key', roots: ['a/1 by a', 'ab/2 by ab'] },
  { name: 'the threshold falls under the old one', roots: ['abc/2 by ab', 'abc/1 by ab', 'abc/1 by a'] },
  { name: 'a key returns after two roots', roots: ['a/1 by a', 'b/1 by ab', 'a/1 by ba', 'a/1 by a'] },
];

const refused: readonly Refused[] = [
  { name: 'the only old key did not sign', roots: ['a/1 by a', 'b/1 by bxy'], code: 'SIGNATURE_WRONG_KEY' },
  { name: 'the only new key did not sign', roots: ['a/1 by a', 'b/1 by axy'], code: 'SIGNATURE_WRONG_KEY' },
  { name: 'two old keys of three signed', roots: ['abcde/3 by ace', 'abdef/3 by aef'] },
  { name: 'two new keys of three signed', roots: ['abcde/3 by ace', 'abdef/3 by ace'] },
  { name: 'the raised threshold is not reached', roots: ['abc/1 by a', 'abc/2 by b'] },
  { name: 'a lowered threshold counts for itself', roots: ['abc/2 by ab', 'abc/1 by a'] },
  { name: 'old and new make three only together', roots: ['abcde/3 by ace', 'fghij/3 by abf'] },
  {
    name: 'a revoked key speaks again',
    roots: ['ab/1 by a', 'b/1 by ab', 'a/1 by a'],
    code: 'SIGNATURE_WRONG_KEY',
  },
  { name: 'more signatures than its own keys can give', roots: ['a/1 by a', 'a/2 by a'] },
  { name: 'nobody signed', roots: ['a/1 by a', 'a/1 by '] },
];

describe('a host follows the roots', () => {
  for (const { name, roots } of followed) {
    it(`when ${name}: ${roots.join(', ')}`, async () => {
      using bench = benchWithRoots(roots);
      assert.equal(await bench.refresh(), 'trusted');
      assert.deepEqual(bench.asked().slice(0, roots.length), namesAfterFirst(roots.length + 1));
      assert.equal(bench.stored()['root'], roots.length);
      assert.deepEqual(bench.storedBytes('root'), bench.repository.file(`${roots.length}.root.json`));
    });
  }
});

describe('a host stops at the root before', () => {
  for (const { name, roots, code = 'SIGNATURE_THRESHOLD' } of refused) {
    it(`when ${name}: ${roots.join(', ')}`, async () => {
      using bench = benchWithRoots(roots);
      assert.equal(await bench.refresh(), code);
      assert.equal(bench.refusal?.facts['role'], 'root');
      // Nothing under a root that is not trusted is even asked for.
      assert.deepEqual(bench.asked(), namesAfterFirst(roots.length));
      assert.deepEqual(bench.stored(), { root: roots.length - 1 });
      assert.deepEqual(bench.storedBytes('root'), bench.repository.file(`${roots.length - 1}.root.json`));
    });
  }

  it('goes on by itself once the missing signature is there', async () => {
    using bench = benchWithRoots(['ab/2 by ab', 'cd/2 by acd']);
    assert.equal(await bench.refresh(), 'SIGNATURE_THRESHOLD');
    rewriteLast(bench.repository, 'abcd');
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(bench.stored()['root'], 2);
  });
});

describe('the chain of roots', () => {
  it('ends only when the server has no next one', async () => {
    using bench = trustBench({
      source: (source) => ({
        ...source,
        fetch: (path, options) =>
          path.endsWith('3.root.json')
            ? source.fetch(path, { ...options, maxBytes: 10 })
            : source.fetch(path, options),
      }),
    });
    bench.repository.bumpRoot();
    bench.repository.bumpRoot();
    assert.equal(await bench.refresh(), 'DOWNLOAD_TOO_LARGE');
    // The roots that were accepted before the error stay, and no timestamp is requested.
    assert.deepEqual(bench.stored(), { root: 2 });
    assert.deepEqual(bench.asked(), ['2.root.json', '3.root.json']);
  });

  it('of 300 new roots is followed for 256 with an error, and completed by the next refresh', async () => {
    using bench = trustBench();
    for (let count = 0; count < 300; count += 1) bench.repository.bumpRoot();
    assert.equal(await bench.refresh(), 'ROOT_CHAIN_TOO_LONG');
    assert.deepEqual(bench.refusal?.facts, { expected: 256, rootVersion: 257 });
    // An old root is never gone on with: it may list the key that one of the others revokes.
    assert.equal(bench.asked().includes('timestamp.json'), false);
    assert.deepEqual(bench.stored(), { root: 257 });
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(bench.asked()[0], '258.root.json');
    assert.equal(bench.stored()['root'], 301);
  });

  it('of exactly as many roots as one refresh follows is no trouble', async () => {
    using bench = trustBench({ limits: { ...defaultMetadataLimits, maxRootRotations: 3 } });
    for (let count = 0; count < 3; count += 1) bench.repository.bumpRoot();
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(bench.stored()['root'], 4);
  });
});

const keysByLetter = new Map<string, SimulatedKey>();

function keysOf(letters: string): SimulatedKey[] {
  return [...letters].map((letter) => {
    const key = keysByLetter.get(letter) ?? makeKey();
    keysByLetter.set(letter, key);
    return key;
  });
}

function benchWithRoots(roots: readonly string[]): TrustBench {
  const bench = trustBench();
  const { repository } = bench;
  repository.root.version = 0;
  for (const text of roots) {
    const [, listed = '', threshold = '', signers = ''] = /^(\w+)\/(\d) by (\w*)$/.exec(text) ?? [];
    repository.setKeys('root', keysOf(listed), Number(threshold));
    repository.bumpRoot(keysOf(signers));
  }
  bench.restart({ trustedRoot: repository.bootstrapRoot });
  return bench;
}

function rewriteLast(repository: RepositorySimulator, signers: string): void {
  repository.writeRoot(keysOf(signers));
}

function namesAfterFirst(last: number): string[] {
  return Array.from({ length: last - 1 }, (_, at) => `${at + 2}.root.json`);
}
