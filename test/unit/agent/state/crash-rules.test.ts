import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  addCrash,
  type CrashCount,
  crashCountOf,
  remainingSuspects,
} from '../../../../src/agent/state/crash-rules.js';
import type { Digest } from '../../../../src/core/names.js';

const digest = (letter: string): Digest => `sha256:${letter.repeat(64)}` as Digest;
const [a1, a2, b1, b2] = ['a', 'b', 'c', 'd'].map(digest) as [Digest, Digest, Digest, Digest];

describe('the crash count of a candidate', () => {
  it('is 0 before the first crash', () => {
    assert.equal(crashCountOf(undefined, { access: a2 }), 0);
  });

  it('increases when the same releases crash in another generation', () => {
    const candidate = { access: a2 };
    const twice = addCrash(addCrash(undefined, candidate), candidate);
    assert.deepEqual(twice, { manifestDigests: candidate, count: 2 });
    assert.equal(crashCountOf(twice, candidate), 2);
  });

  it('starts at 1 for another release', () => {
    const known = addCrash(undefined, { access: a1 });
    assert.equal(crashCountOf(known, { access: a2 }), 0);
    assert.deepEqual(addCrash(known, { access: a2 }), { manifestDigests: { access: a2 }, count: 1 });
  });

  it('starts at 1 for the same files in another bundle', () => {
    const known = addCrash(undefined, { access: a1 });
    assert.equal(crashCountOf(known, { 'dns-edge': a1 }), 0);
  });

  it('stays with the release that both candidates have, when another bundle changes', () => {
    const one = addCrash(undefined, { access: a2, 'dns-edge': b1 });
    const two = addCrash(one, { access: a2, 'dns-edge': b2 });
    assert.deepEqual(two, { manifestDigests: { access: a2 }, count: 2 });
    assert.equal(crashCountOf(two, { 'dns-edge': b2 }), 0, 'the other one is free');
  });

  it('increases for two generations without a new release', () => {
    const none: CrashCount = addCrash(undefined, {});
    assert.equal(crashCountOf(addCrash(none, {}), {}), 2);
    assert.equal(crashCountOf(none, { access: a1 }), 0);
  });
});

describe('a commit', () => {
  const configured = ['access', 'dns-edge'];
  const suspects = { access: a2, 'dns-edge': b2 };

  it('clears a suspect that is active in its generation', () => {
    const commit = { configured, active: { access: a2, 'dns-edge': b1 }, changed: ['access'] };
    assert.deepEqual(remainingSuspects(suspects, commit), { 'dns-edge': b2 });
  });

  it('clears a suspect when its bundle has a newer release', () => {
    const commit = { configured, active: { access: a1 }, changed: ['access', 'dns-edge'] };
    assert.equal(remainingSuspects(suspects, commit), undefined);
  });

  it('keeps a suspect while only other bundles change', () => {
    const commit = { configured, active: { access: a1, 'dns-edge': b1 }, changed: ['dns-edge'] };
    assert.deepEqual(remainingSuspects(suspects, commit), { access: a2 });
    const first = { configured, active: { 'dns-edge': b1 }, changed: ['dns-edge'] };
    assert.deepEqual(remainingSuspects(suspects, first), { access: a2 }, 'nor where it never was active');
  });

  it('clears an active suspect, even if the move did not change its bundle', () => {
    const commit = { configured, active: { access: a2, 'dns-edge': b1 }, changed: [] };
    assert.deepEqual(remainingSuspects(suspects, commit), { 'dns-edge': b2 });
  });

  it('clears a suspect of a bundle that is not configured any more', () => {
    const commit = { configured: ['dns-edge'], active: { 'dns-edge': b1 }, changed: [] };
    assert.deepEqual(remainingSuspects(suspects, commit), { 'dns-edge': b2 });
  });
});
