import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createLineReader,
  type LineAnswer,
  type LineRules,
  maxLineAnswerBytes,
} from '../../../../src/workers/protocols/line-protocol.js';

const isFinal = (line: string): 'match' | 'no-match' => (/^\d{4} /.test(line) ? 'match' : 'no-match');

function read(rules: LineRules, bytes: string, size: number): LineAnswer | undefined {
  const reader = createLineReader(rules);
  const all = Buffer.from(bytes);
  for (let at = 0; at < all.length; at += size) {
    const answer = reader.push(all.subarray(at, at + size));
    if (answer !== undefined) return answer;
  }
  return reader.end();
}

describe('an answer in lines', () => {
  const cases: readonly (readonly [string, LineRules, string, string | undefined])[] = [
    ['to the end of the connection', { end: 'eof' }, 'a\nb\n', 'a\nb'],
    ['to the end of the connection, without a last line end', { end: 'eof' }, 'a\nb', 'a\nb'],
    ['that is an empty line', { end: 'eof' }, '\n', ''],
    ['of one line', { end: 'line' }, 'a\r\nb\n', 'a'],
    ['of one line that was cut', { end: 'line' }, 'a', undefined],
    ['to a final line', { end: isFinal }, '0002-Reading\n0003 Done\n0004 More\n', '0002-Reading\n0003 Done'],
    ['to a final line that never came', { end: isFinal }, '0002-Reading\n', undefined],
    [
      'behind a greeting that looks like a final line',
      { end: isFinal, greeting: (line) => (line.startsWith('0001 ') ? 'match' : 'no-match') },
      '0001 BIRD ready.\n0002-Reading\n0003 Done\n',
      '0002-Reading\n0003 Done',
    ],
    [
      'without the greeting that it might have had',
      { end: 'line', greeting: (line) => (line.startsWith('0001 ') ? 'match' : 'no-match') },
      'ok\n',
      'ok',
    ],
    ['with characters of several bytes', { end: 'line' }, 'pär\n', 'pär'],
  ];
  for (const [what, rules, bytes, text] of cases) {
    it(`is read ${what}, whole or byte by byte`, () => {
      for (const size of [1, 2, 1000]) {
        assert.deepEqual(read(rules, bytes, size), text === undefined ? undefined : { kind: 'text', text });
      }
    });
  }

  it('is silence when the other end closes without a byte, and nothing where an end must come', () => {
    assert.deepEqual(read({ end: 'eof' }, '', 1), { kind: 'silence' });
    assert.equal(read({ end: 'line' }, '', 1), undefined);
  });

  it('has a bound in bytes and in lines', () => {
    assert.equal(read({ end: 'line' }, 'x'.repeat(maxLineAnswerBytes + 1), 1000)?.kind, 'malformed');
    assert.equal(read({ end: 'eof' }, '\n'.repeat(2001), 1000)?.kind, 'malformed');
    assert.equal(read({ end: 'eof' }, '\n'.repeat(2000), 1000)?.kind, 'text');
  });

  it('is malformed where a pattern has no verdict', () => {
    assert.equal(read({ end: () => 'no-verdict' }, 'a\n', 10)?.kind, 'malformed');
    assert.equal(read({ end: 'line', greeting: () => 'no-verdict' }, 'a\n', 10)?.kind, 'malformed');
  });
});
