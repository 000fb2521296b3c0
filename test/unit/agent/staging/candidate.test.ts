// Whether a candidate has the content of the active policy: the same bundles, each with the same serial and tree.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ActivePolicy } from '../../../../src/agent/generations/generation-contents.js';
import { type CandidateBundle, hasSameContent } from '../../../../src/agent/staging/candidate.js';

const release = (serial: number, digest: string) => ({ serial, manifest: { digest } });
const active = {
  bundles: new Map([['access', { record: { release: release(1, 'one') } }]]),
} as unknown as ActivePolicy;
const candidate = (...staged: readonly ReturnType<typeof release>[]) =>
  staged.map((one) => ({
    selection: { bundle: { name: 'access' } },
    staged: { release: one },
  })) as unknown as CandidateBundle[];

describe('a candidate', () => {
  it('has the content of the active policy only if serial and tree of each bundle are the same', () => {
    assert.equal(hasSameContent(candidate(release(1, 'one')), active), true);
    assert.equal(hasSameContent(candidate(release(2, 'one')), active), false);
    assert.equal(hasSameContent(candidate(release(1, 'two')), active), false);
    assert.equal(hasSameContent([], active), false);
  });
});
