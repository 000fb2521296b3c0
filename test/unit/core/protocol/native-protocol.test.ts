import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isWritError } from '../../../../src/core/errors.js';
import {
  boundReason,
  isWorkerName,
  maxReasonBytes,
  parseAgentMessage,
  parseWorkerMessage,
} from '../../../../src/core/protocol/native-protocol.js';

const malformed = (error: unknown): boolean => isWritError(error) && error.code === 'MESSAGE_MALFORMED';

describe('a message of a native worker', () => {
  it('is parsed without its unknown members', () => {
    assert.deepEqual(parseWorkerMessage({ type: 'hello', name: 'access-1', pid: 4711, shoe: 43 }), {
      type: 'hello',
      name: 'access-1',
      pid: 4711,
    });
    assert.deepEqual(parseWorkerMessage({ type: 'ack', id: 1, generation: 7, reason: 'x' }), {
      type: 'ack',
      id: 1,
      generation: 7,
    });
  });

  it('is rejected if a number is not a positive integer', () => {
    for (const id of [0, -1, 1.5, '1', null, undefined, 2 ** 53, Number.NaN]) {
      assert.throws(() => parseWorkerMessage({ type: 'ack', id, generation: 7 }), malformed, String(id));
      assert.throws(() => parseWorkerMessage({ type: 'ack', id: 1, generation: id }), malformed, String(id));
    }
  });

  it('has a reason of at most a kilobyte, and a short one unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (reason) => {
        const bounded = boundReason(reason);
        assert.ok(Buffer.byteLength(bounded) <= maxReasonBytes);
        if (Buffer.byteLength(reason) <= maxReasonBytes) assert.equal(bounded, reason);
      }),
    );
  });

  it('has a name that is safe in a log and a path', () => {
    for (const name of ['a', 'access-worker.js', 'A_1']) assert.ok(isWorkerName(name));
    for (const name of ['', '.a', '-a', 'a/b', 'a b', 'a\n', 'a#2', 'ä', 1])
      assert.equal(isWorkerName(name), false);
  });
});

describe('a message of the agent', () => {
  const message = { type: 'generation', id: 3, generation: 7, path: '/policy/generations/7' };

  it('is a generation, or of an unknown type of a newer agent', () => {
    assert.deepEqual(parseAgentMessage({ ...message, note: 'x' }), message);
    assert.equal(parseAgentMessage({ type: 'weather' }), undefined);
  });

  it('is rejected if a member is wrong', () => {
    for (const change of [{ type: 1 }, { id: 0 }, { generation: '7' }, { path: 'policy' }, { path: 7 }]) {
      assert.throws(() => parseAgentMessage({ ...message, ...change }), malformed, JSON.stringify(change));
    }
  });
});
