import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Digest } from '../../../../src/core/names.js';
import {
  affectsGroup,
  changedPaths,
  type PolicyFiles,
} from '../../../../src/core/release/affected-groups.js';
import type { Manifest } from '../../../../src/core/release/manifest.js';
import type { Stamped } from '../../../../src/core/release/stamps.js';

function manifest(files: Readonly<Record<string, number>>): Manifest {
  return {
    files: Object.entries(files).map(([path, content]) => ({
      path,
      sizeBytes: 1,
      digest: `sha256:${String(content).repeat(64)}` as Digest,
      executable: false,
    })),
  };
}

function only(bundle: string, files: Manifest, stamped?: Stamped): PolicyFiles {
  return new Map([[bundle, { manifest: files, stamped }]]);
}

describe('the changed paths', () => {
  it('are those that were added, removed or have other content, by bundle', () => {
    const before = manifest({ same: 1, other: 1, gone: 1 });
    const after = manifest({ same: 1, other: 2, fresh: 1 });
    assert.deepEqual(changedPaths(only('access', before), only('access', after)).sort(), [
      'access:fresh',
      'access:gone',
      'access:other',
    ]);
  });

  it('are none if only a stamp changed, and are those with another source', () => {
    const stampedAs = (content: number): Stamped => {
      const digest = `sha256:${String(content).repeat(64)}` as Digest;
      return { source: digest, stamps: [{ path: 'zone', length: 1, digest, at: [] }] };
    };
    const before = only('x', manifest({ zone: 1, same: 1 }), stampedAs(7));
    assert.deepEqual(changedPaths(before, only('x', manifest({ zone: 2, same: 1 }), stampedAs(7))), []);
    assert.deepEqual(changedPaths(before, only('x', manifest({ zone: 1, same: 1 }), stampedAs(8))), [
      'x:zone',
    ]);
    assert.deepEqual(changedPaths(before, only('x', manifest({ zone: 2, same: 2 }))), ['x:zone', 'x:same']);
  });

  it('are all paths of an added or removed bundle', () => {
    const all = manifest({ a: 1, 'b/c': 1 });
    assert.deepEqual(changedPaths(new Map(), only('x', all)), ['x:a', 'x:b/c']);
    assert.deepEqual(changedPaths(only('x', all), new Map()), ['x:a', 'x:b/c']);
    assert.deepEqual(changedPaths(only('x', all), only('y', all)), ['x:a', 'x:b/c', 'y:a', 'y:b/c']);
    assert.deepEqual(changedPaths(only('x', all), only('x', all)), []);
  });
});

describe('a group is affected', () => {
  const both = ['access', 'dns-edge'];
  const cases: readonly (readonly [
    string,
    readonly string[],
    readonly string[],
    readonly string[],
    boolean,
  ])[] = [
    ['by any path of a bundle that it uses', ['access'], [], ['access:a'], true],
    ['by no path of another bundle', ['access'], [], ['dns-edge:a'], false],
    ['by nothing when nothing changed', ['access'], [], [], false],
    ['by a path that matches', ['access'], ['views/**'], ['access:views/eu/a.yaml'], true],
    ['by no other path', ['access'], ['views/**'], ['access:zones/a'], false],
    ['by a name that begins with a dot too', ['access'], ['**'], ['access:.hidden/a'], true],
    ['by a glob without bundle in each that it uses', both, ['*.rpz'], ['dns-edge:block.rpz'], true],
    ['by a glob of one bundle in that one', both, ['dns-edge:*.rpz'], ['dns-edge:block.rpz'], true],
    ['by a glob of one bundle in no other', both, ['dns-edge:*.rpz'], ['access:block.rpz'], false],
    ['by a path with a colon in it', ['access'], ['a:b'], ['access:a:b'], true],
    ['by one star in no deeper directory', ['access'], ['*'], ['access:a/b'], false],
  ];
  for (const [name, uses, when, changed, expected] of cases) {
    it(name, () => assert.equal(affectsGroup({ uses, when }, changed), expected));
  }
});
