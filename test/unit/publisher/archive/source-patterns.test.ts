// Where a pattern matches: a name anywhere, a path with a slash from the top of SOURCE alone.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compilePatterns } from '../../../../src/publisher/archive/source-patterns.js';

describe('a pattern of a source', () => {
  const matches = (text: string, path: string): boolean =>
    compilePatterns([{ place: '', text }]).matches(path, false);

  it('matches a name in each directory, and a path with a slash from the top alone', () => {
    assert.deepEqual([matches('a', 'a'), matches('a', 'sub/a')], [true, true]);
    assert.deepEqual([matches('/a', 'a'), matches('/a', 'sub/a')], [true, false]);
    assert.deepEqual([matches('docs/a', 'docs/a'), matches('docs/a', 'sub/docs/a')], [true, false]);
  });
});
