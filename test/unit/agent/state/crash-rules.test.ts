import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type CrashCount,
  countCrash,
  crashesOf,
  stillSuspect,
} from '../../../../src/agent/state/crash-rules.js';
import type { Digest } from '../../../../src/core/names.js';

const digest = (letter: string): Digest => `sha256:${letter.repeat(64)}` as Digest;
const [a1, a2, b1, b2] = ['a', 'b', 'c', 'd'].map(digest) as [Digest, Digest, Digest, Digest];

describe('the crashes of a candidate', () => {
  it('are none before the first', () => {
    assert.equal(crashesOf(undefined, { access: a2 }), 0);
  });

  it('are counted on when the same releases come in another generation', () => {
    const candidate = { access: a2 };
    const twice = countCrash(countCrash(undefined, candidate), candidate);
    assert.deepEqual(twice, { manifestDigests: candidate, count: 2 });
    assert.equal(crashesOf(twice, candidate), 2);
  });

  it('begin anew for another release', () => {
    const known = countCrash(undefined, { access: a1 });
    assert.equal(crashesOf(known, { access: a2 }), 0);
    assert.deepEqual(countCrash(known, { access: a2 }), { manifestDigests: { access: a2 }, count: 1 });
  });

  it('begin anew for the same files in another bundle', () => {
    const known = countCrash(undefined, { access: a1 });
    assert.equal(crashesOf(known, { 'dns-edge': a1 }), 0);
  });

  it('stay with the release that they have in common, whatever is published beside it', () => {
    const one = countCrash(undefined, { access: a2, 'dns-edge': b1 });
    const two = countCrash(one, { access: a2, 'dns-edge': b2 });
    assert.deepEqual(two, { manifestDigests: { access: a2 }, count: 2 });
    assert.equal(crashesOf(two, { 'dns-edge': b2 }), 0, 'the other one is free');
  });

  it('of a generation that brings nothing are counted on too', () => {
    const none: CrashCount = countCrash(undefined, {});
    assert.equal(crashesOf(countCrash(none, {}), {}), 2);
    assert.equal(crashesOf(none, { access: a1 }), 0);
  });
});

describe('a commit', () => {
  const configured = ['access', 'dns-edge'];
  const suspects = { access: a2, 'dns-edge': b2 };

  it('of the suspect itself clears it', () => {
    const commit = { configured, active: { access: a2, 'dns-edge': b1 }, changed: ['access'] };
    assert.deepEqual(stillSuspect(suspects, commit), { 'dns-edge': b2 });
  });

  it('of a newer release of its bundle clears it', () => {
    const commit = { configured, active: { access: a1 }, changed: ['access', 'dns-edge'] };
    assert.equal(stillSuspect(suspects, commit), undefined);
  });

  it('of other bundles leaves it: a publish beside it must not let it in again', () => {
    const commit = { configured, active: { access: a1, 'dns-edge': b1 }, changed: ['dns-edge'] };
    assert.deepEqual(stillSuspect(suspects, commit), { access: a2 });
    const first = { configured, active: { 'dns-edge': b1 }, changed: ['dns-edge'] };
    assert.deepEqual(stillSuspect(suspects, first), { access: a2 }, 'nor where it never was active');
  });

  it('of a generation that has the suspect clears it, whatever the move itself brought', () => {
    const commit = { configured, active: { access: a2, 'dns-edge': b1 }, changed: [] };
    assert.deepEqual(stillSuspect(suspects, commit), { 'dns-edge': b2 });
  });

  it('clears bundles that are configured no more', () => {
    const commit = { configured: ['dns-edge'], active: { 'dns-edge': b1 }, changed: [] };
    assert.deepEqual(stillSuspect(suspects, commit), { 'dns-edge': b2 });
  });
});
