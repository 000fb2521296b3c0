import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  asUnreachable,
  comparableText,
  isRepeatedByLoader,
  repeatedRefusals,
  stillRefusesAll,
} from '../../../../src/agent/notify/repeated-refusal-rules.js';
import type { WorkerResult } from '../../../../src/core/cycle/cycle-report.js';
import { WritError } from '../../../../src/core/errors.js';

const said = (worker: string, text: string, more: Partial<WorkerResult> = {}): WorkerResult => ({
  ...{ group: 'app', worker, state: 'refused', generation: 2, text, atMs: 0, ...more },
});
const refusal = (...results: readonly WorkerResult[]): WritError =>
  new WritError('WORKER_REFUSED', 'no', { facts: { groups: ['app'], results } });
const loader = (code: 'LOADER_FAILED' | 'LOADER_BROKEN', text: string, group = 'app'): WritError =>
  new WritError(code, `${group}: exit 1: ${text}`, { facts: { groups: [group] } });

describe('the text of a refusal', () => {
  it('is the same whatever numbers, digests and paths stand in it', () => {
    const one =
      "cp: '/var/lib/writ/policy/generations/7/b/app.conf' (12:03:04, 9c1e2d3f4a5b6c7d): busy for 3 s";
    const other = "cp: '/srv/x' (1:2:3, 0000000000000000ff): busy for 20 s";
    assert.equal(comparableText(one), comparableText(other));
  });

  it('is another one where a word differs', () => {
    assert.notEqual(comparableText('bad syntax in line 3'), comparableText('out of memory in line 3'));
  });

  it('is what stands behind the lines of the dynamic loader, however many these are', () => {
    const line = "ERROR: ld.so: object '/x.so' from /etc/ld.so.preload cannot be preloaded: ignored.";
    for (const join of [' | ', '\n']) {
      const behind = (text: string) => comparableText(['exit 1: ', line, line, line, text].join(join));
      assert.notEqual(behind('bad syntax'), behind('out of memory'));
      assert.equal(behind('busy for 3 s'), behind('busy for 20 s'));
    }
  });

  it('is compared in linear time, however hostile it is', () => {
    const begunMs = performance.now();
    for (const part of ['/', '/a', '0', 'f', '//a/', '/ ']) comparableText(part.repeat(64_000 / part.length));
    assert.ok(performance.now() - begunMs < 1000);
  });
});

describe('a worker that refuses on the way back', () => {
  const hadAccepted = (): boolean => true;

  it('has refused everything where it, or another worker of its group, refused the new generation alike', () => {
    const forward = refusal(said('a', 'busy 1'));
    const results = [said('a', 'busy 2'), said('b', 'busy 3'), said('c', 'busy', { group: 'other' })];
    assert.deepEqual([...repeatedRefusals({ forward, results, hadAccepted })], ['app/a', 'app/b']);
  });

  it('has judged where nobody refused the new generation, or it had never taken the one before', () => {
    const results = [said('a', 'busy')];
    const died = refusal(said('a', 'busy', { state: 'unreachable' }));
    assert.equal(repeatedRefusals({ forward: died, results, hadAccepted }).size, 0);
    const forward = refusal(said('a', 'busy'));
    assert.equal(repeatedRefusals({ forward, results, hadAccepted: () => false }).size, 0);
  });

  it('refuses everything still as long as its text is the same', () => {
    const { state, text, generation: wanted, atMs } = asUnreachable(said('a', 'busy 1'));
    const known = { state, text, wanted, atMs };
    assert.equal(stillRefusesAll(known, said('a', 'busy 7')), true);
    assert.equal(stillRefusesAll(known, said('a', 'bad syntax')), false);
    assert.equal(stillRefusesAll({ ...known, text: 'busy 1' }, said('a', 'busy 1')), false);
    assert.equal(stillRefusesAll(undefined, said('a', 'busy 1')), false);
  });
});

describe('a loader that ends alike on the way back', () => {
  it('has judged nothing where it had loaded that generation before', () => {
    const [forward, back] = [loader('LOADER_FAILED', '/a: busy'), loader('LOADER_FAILED', '/b: busy')];
    assert.equal(isRepeatedByLoader(forward, back), true);
    assert.equal(isRepeatedByLoader(forward, back, ['app']), false);
  });

  it('is another loader, or another end, where group, code or text differ', () => {
    const forward = loader('LOADER_FAILED', 'busy');
    assert.equal(isRepeatedByLoader(forward, loader('LOADER_FAILED', 'busy', 'b')), false);
    assert.equal(isRepeatedByLoader(forward, loader('LOADER_BROKEN', 'busy')), false);
    assert.equal(isRepeatedByLoader(forward, loader('LOADER_FAILED', 'bad syntax')), false);
    assert.equal(isRepeatedByLoader(forward, new WritError('PROBE_FAILED', 'x')), false);
  });
});
