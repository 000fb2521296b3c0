import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  canonicalRequires,
  isFeature,
  judgeRequires,
  knownFeatures,
  maxRequires,
  parseRequires,
} from '../../../../src/core/release/requires.js';
import { writVersion } from '../../../../src/core/version.js';

const many = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `f-${String(index).padStart(3, '0')}`);

describe('the required features of a release', () => {
  it('are parsed as they are encoded: ascending, each name once', () => {
    const requires = canonicalRequires(['waves-1', 'brake-2', 'waves-1']);
    assert.deepEqual(requires, ['brake-2', 'waves-1']);
    assert.deepEqual(parseRequires(requires), requires);
    assert.equal(canonicalRequires([]), undefined);
  });

  it('are at most sixteen names', () => {
    assert.equal(parseRequires(many(maxRequires))?.length, 16);
    assert.equal(parseRequires(many(maxRequires + 1)), undefined);
  });

  it('have names of 1 to 64 characters that each version of Writ can read', () => {
    for (const name of ['a', 'waves-1', '2-phase', 'a.b', 'x'.repeat(64)]) assert.ok(isFeature(name), name);
    const bad = ['', '-a', '.a', 'Waves', 'a b', 'a_b', 'a/b', 'a\n', 'ä', 'x'.repeat(65), 7, null, ['a']];
    for (const name of bad) {
      assert.equal(isFeature(name), false, String(name));
      assert.equal(parseRequires([name]), undefined, String(name));
    }
  });

  const malformed: [string, unknown][] = [
    ['no list', { 0: 'waves-1', length: 1 }],
    ['a text', 'waves-1'],
    ['null', null],
    ['an empty list', []],
    ['a name twice', ['waves-1', 'waves-1']],
    ['names in another order', ['waves-1', 'brake-1']],
  ];
  for (const [name, value] of malformed) {
    it(`are malformed with ${name}`, () => {
      assert.equal(parseRequires(value), undefined);
    });
  }
});

describe('a release that requires features', () => {
  const release = { bundle: 'dns-edge', serial: 7 };
  const judge = (requires: readonly string[], known?: readonly string[]) =>
    judgeRequires({ ...release, requires }, known);

  it('is accepted if each is known, and if none is required', () => {
    assert.equal(judge(['brake-1', 'waves-1'], ['waves-1', 'brake-1', 'other']), undefined);
    assert.equal(judgeRequires(release), undefined);
  });

  it('waits if one is not known, with the unknown and the known features in the facts', () => {
    const error = judge(['brake-1', 'waves-1'], ['brake-1']);
    assert.deepEqual([error?.code, error?.kind], ['REQUIRES_UNKNOWN', 'deferred']);
    assert.deepEqual(error?.facts, {
      ...release,
      unknown: ['waves-1'],
      known: ['brake-1'],
      version: writVersion,
    });
    assert.match(error?.message ?? '', /^dns-edge 7 requires waves-1, which Writ /);
    assert.match(error?.hint ?? '', /^Upgrade Writ on this host/);
  });

  it('is compared with the features of this version by default', () => {
    assert.equal(judge(['no-such-feature'])?.code, 'REQUIRES_UNKNOWN');
    if (knownFeatures.length > 0) assert.equal(judge(knownFeatures), undefined);
  });
});
