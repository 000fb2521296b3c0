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

const resultOf = (worker: string, text: string, more: Partial<WorkerResult> = {}): WorkerResult => ({
  ...{ group: 'app', worker, state: 'refused', generation: 2, text, atMs: 0, ...more },
});
const refusal = (...results: readonly WorkerResult[]): WritError =>
  new WritError('WORKER_REFUSED', 'no', { facts: { groups: ['app'], results } });
const loader = (code: 'LOADER_FAILED' | 'LOADER_BROKEN', text: string, group = 'app'): WritError =>
  new WritError(code, `${group}: exit 1: ${text}`, { facts: { groups: [group] } });

describe('the text of a refusal', () => {
  it('is compared without its numbers, digests and paths', () => {
    const one =
      "cp: '/var/lib/writ/policy/generations/7/b/app.conf' (12:03:04, 9c1e2d3f4a5b6c7d): busy for 3 s";
    const other = "cp: '/srv/x' (1:2:3, 0000000000000000ff): busy for 20 s";
    assert.equal(comparableText(one), comparableText(other));
  });

  it('differs if a word differs', () => {
    assert.notEqual(comparableText('bad syntax in line 3'), comparableText('out of memory in line 3'));
  });

  it('is compared without the lines of the dynamic loader', () => {
    const line = "ERROR: ld.so: object '/x.so' from /etc/ld.so.preload cannot be preloaded: ignored.";
    for (const join of [' | ', '\n']) {
      const behind = (text: string) => comparableText(['exit 1: ', line, line, line, text].join(join));
      assert.notEqual(behind('bad syntax'), behind('out of memory'));
      assert.equal(behind('busy for 3 s'), behind('busy for 20 s'));
    }
  });

  it('is compared in linear time, also if it is hostile', () => {
    const begunMs = performance.now();
    for (const part of ['/', '/a', '0', 'f', '//a/', '/ ']) comparableText(part.repeat(64_000 / part.length));
    assert.ok(performance.now() - begunMs < 1000);
  });
});

describe('a worker that refuses during a restore', () => {
  const hadAccepted = (): boolean => true;

  it('refuses every generation if a worker of its group refused the new generation with the same text', () => {
    const forward = refusal(resultOf('a', 'busy 1'));
    const results = [
      resultOf('a', 'busy 2'),
      resultOf('b', 'busy 3'),
      resultOf('c', 'busy', { group: 'other' }),
    ];
    assert.deepEqual([...repeatedRefusals({ forward, results, hadAccepted })], ['app/a', 'app/b']);
  });

  it('judges the policy if no worker refused the new generation, or if it never accepted the previous one', () => {
    const results = [resultOf('a', 'busy')];
    const died = refusal(resultOf('a', 'busy', { state: 'unreachable' }));
    assert.equal(repeatedRefusals({ forward: died, results, hadAccepted }).size, 0);
    const forward = refusal(resultOf('a', 'busy'));
    assert.equal(repeatedRefusals({ forward, results, hadAccepted: () => false }).size, 0);
  });

  it('refuses every generation for as long as its text is the same', () => {
    const { state, text, generation: wanted, atMs } = asUnreachable(resultOf('a', 'busy 1'));
    const known = { state, text, wanted, atMs };
    assert.equal(stillRefusesAll(known, resultOf('a', 'busy 7')), true);
    assert.equal(stillRefusesAll(known, resultOf('a', 'bad syntax')), false);
    assert.equal(stillRefusesAll({ ...known, text: 'busy 1' }, resultOf('a', 'busy 1')), false);
    assert.equal(stillRefusesAll(undefined, resultOf('a', 'busy 1')), false);
  });
});

describe('a loader that fails in the same way during a restore', () => {
  it('does not judge the policy if it had loaded that generation before', () => {
    const [forward, back] = [loader('LOADER_FAILED', '/a: busy'), loader('LOADER_FAILED', '/b: busy')];
    assert.equal(isRepeatedByLoader(forward, back), true);
    assert.equal(isRepeatedByLoader(forward, back, ['app']), false);
  });

  it('judges the policy if group, code or text differ', () => {
    const forward = loader('LOADER_FAILED', 'busy');
    assert.equal(isRepeatedByLoader(forward, loader('LOADER_FAILED', 'busy', 'b')), false);
    assert.equal(isRepeatedByLoader(forward, loader('LOADER_BROKEN', 'busy')), false);
    assert.equal(isRepeatedByLoader(forward, loader('LOADER_FAILED', 'bad syntax')), false);
    assert.equal(isRepeatedByLoader(forward, new WritError('PROBE_FAILED', 'x')), false);
  });
});
