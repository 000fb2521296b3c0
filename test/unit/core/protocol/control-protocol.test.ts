import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isWritError, WritError } from '../../../../src/core/errors.js';
import { maxSocketLineBytes } from '../../../../src/core/limits.js';
import {
  boundAnswer,
  controlError,
  parseControlRequest,
} from '../../../../src/core/protocol/control-protocol.js';
import { encodeLine } from '../../../../src/core/protocol/socket-protocol.js';

describe('a control request', () => {
  for (const request of [
    { type: 'pull', force: false, by: 'anna' },
    { type: 'pull', force: true, by: 'anna' },
    { type: 'status' },
    { type: 'history', limit: 20 },
    { type: 'history', limit: 1, cycle: 'c-7f20' },
    { type: 'rollback', by: 'anna' },
    { type: 'rollback', by: 'anna', generation: 17, reason: 'breaks eu' },
    { type: 'resume', by: 'anna' },
    { type: 'reload', by: 'anna' },
    { type: 'pause', by: 'anna', reason: 'freeze' },
    { type: 'pause', by: 'anna', reason: 'freeze', untilMs: 5 },
  ]) {
    it(`is read: ${JSON.stringify(request)}`, () => {
      assert.deepEqual(parseControlRequest(request), request);
    });
  }

  it('may have members of a later version', () => {
    assert.deepEqual(parseControlRequest({ type: 'status', wide: true }), { type: 'status' });
  });

  for (const request of [
    {},
    { type: 'format' },
    { type: 'pull' },
    { type: 'pull', by: '' },
    { type: 'pull', by: 'x'.repeat(201) },
    { type: 'history' },
    { type: 'history', limit: 0 },
    { type: 'history', limit: 1001 },
    { type: 'history', limit: 1.5 },
    { type: 'history', limit: 1, cycle: 7 },
    { type: 'rollback', by: 'anna', generation: -1 },
    { type: 'rollback', by: 'anna', generation: '17' },
    { type: 'rollback', by: 'anna', reason: 5 },
    { type: 'resume' },
    { type: 'reload' },
    { type: 'pause', by: 'anna' },
    { type: 'pause', by: 'anna', reason: '' },
    { type: 'pause', by: 'anna', reason: 'r', untilMs: 'tomorrow' },
  ]) {
    it(`is refused: ${JSON.stringify(request).slice(0, 60)}`, () => {
      assert.throws(
        () => parseControlRequest(request),
        (error) => isWritError(error) && error.code === 'MESSAGE_MALFORMED',
      );
    });
  }
});

describe('the bound on a response', () => {
  it('does not change a small response', () => {
    const answer = { type: 'status.result', workers: [{ worker: 'a' }], last: { outcome: 'activated' } };
    assert.deepEqual(boundAnswer(answer), answer);
  });

  it('cuts a long text, and adds the number of removed characters', () => {
    const { text } = boundAnswer({ text: 'x'.repeat(2500) });
    assert.equal(text, `${'x'.repeat(2000)}... (500 more)`);
  });

  it('cuts the longest list until the response fits one line, and counts the removed entries', () => {
    const workers = Array.from({ length: 5000 }, (_, n) => ({ worker: `w${n}`, text: 'y'.repeat(50) }));
    const answer = boundAnswer({ type: 'status.result', workers, bundles: [{ bundle: 'dns-edge' }] });
    assert.ok(encodeLine(answer).length <= maxSocketLineBytes + 1);
    assert.deepEqual(answer.bundles, [{ bundle: 'dns-edge' }]);
    assert.equal(answer.workers.length + (answer.truncated?.['workers'] ?? 0), 5000);
    assert.ok(answer.workers.length > 500);
  });

  it('cuts nested lists, as in an entry of the history', () => {
    const steps = Array.from({ length: 100 }, () => ({ text: 'z'.repeat(2000) }));
    const answer = boundAnswer({ type: 'history.entry', result: { problems: steps }, steps: [] });
    assert.ok(encodeLine(answer).length <= maxSocketLineBytes + 1);
    assert.equal(answer.result.problems.length + (answer.truncated?.['problems'] ?? 0), 100);
  });

  it('applies to errors with large facts', () => {
    const error = new WritError('CONFIG_INVALID', 'no', { facts: { mistakes: Array(100_000).fill('no') } });
    const answer = controlError(error);
    assert.equal(answer.code, 'CONFIG_INVALID');
    assert.ok(encodeLine(answer).length <= maxSocketLineBytes + 1);
  });
});
