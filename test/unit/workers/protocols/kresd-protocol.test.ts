import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createKresdReader,
  encodeKresdCommand,
  type KresdAnswer,
  maxKresdAnswerBytes,
} from '../../../../src/workers/protocols/kresd-protocol.js';
import { kresdFrame } from '../../../kit/workers/fake-kresd.js';

function readAll(bytes: Uint8Array, size: number): KresdAnswer | undefined {
  const read = createKresdReader();
  for (let at = 0; at < bytes.length; at += size) {
    const answer = read(bytes.subarray(at, at + size));
    if (answer !== undefined) return answer;
  }
  return undefined;
}

describe('the control socket of kresd', () => {
  it('switches to binary mode and asks in one write', () => {
    assert.equal(encodeKresdCommand('policy_reset()'), '__binary\npolicy_reset()\n');
  });

  // What the real 5.6 sent: `1+1`, `nil`, and a table of 34 bytes whose text begins as a prompt does.
  const recorded: readonly (readonly [string, string])[] = [
    ['0000000132', '2'],
    ['000000036e696c', 'nil'],
    ['000000033e2031', '> 1'],
    ['00000000', ''],
  ];
  for (const [hex, text] of recorded) {
    for (const prompt of ['', '3e20']) {
      it(`reads ${prompt}${hex}, whole or byte by byte`, () => {
        const bytes = Buffer.from(`${prompt}${hex}`, 'hex');
        for (const size of [1, 2, 3, bytes.length]) {
          assert.deepEqual(readAll(bytes, size), { kind: 'text', text });
        }
      });
    }
  }

  it('takes the first of two answers in one packet', () => {
    const bytes = Buffer.concat([Buffer.from('> '), kresdFrame('0'), kresdFrame('1')]);
    assert.deepEqual(readAll(bytes, bytes.length), { kind: 'text', text: '0' });
  });

  it('returns nothing before the last byte', () => {
    const bytes = Buffer.concat([Buffer.from('> '), kresdFrame('0')]);
    assert.equal(readAll(bytes.subarray(0, -1), 1), undefined);
  });

  it('refuses a length that no answer has', () => {
    const answer = readAll(Buffer.from('3e20000f4241', 'hex'), 1);
    assert.deepEqual(answer, { kind: 'malformed', length: maxKresdAnswerBytes + 1 });
  });

  it('reads the longest answer', () => {
    const text = 'x'.repeat(maxKresdAnswerBytes);
    assert.deepEqual(readAll(kresdFrame(text), 65_536), { kind: 'text', text });
  });
});
