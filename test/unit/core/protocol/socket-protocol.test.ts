import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isWritError } from '../../../../src/core/errors.js';
import { maxSocketLineBytes } from '../../../../src/core/limits.js';
import {
  createLineReader,
  encodeLine,
  helloLine,
  parseHello,
} from '../../../../src/core/protocol/socket-protocol.js';

const malformed = (error: unknown): boolean => isWritError(error) && error.code === 'MESSAGE_MALFORMED';

describe('lines of a socket', () => {
  it('are assembled from pieces of any size', () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.string(), fc.string()), { maxLength: 5 }),
        fc.integer({ min: 1, max: 7 }),
        (messages, size) => {
          const bytes = Buffer.from(messages.map(encodeLine).join(''));
          const reader = createLineReader();
          const read: unknown[] = [];
          for (let at = 0; at < bytes.length; at += size) {
            read.push(...reader.push(bytes.subarray(at, at + size)));
          }
          assert.deepEqual(JSON.stringify(read), JSON.stringify(messages));
        },
      ),
      { numRuns: 100 },
    );
  });

  it('are copied, so that the caller may reuse a chunk', () => {
    const reader = createLineReader();
    const chunk = Buffer.from('{"a":');
    assert.deepEqual(reader.push(chunk), []);
    chunk.fill(0);
    assert.deepEqual(reader.push(Buffer.from('1}\n')), [{ a: 1 }]);
  });

  it('are rejected over 64 kB on both sides, also before their line break', () => {
    const long = { text: 'x'.repeat(maxSocketLineBytes) };
    assert.throws(() => encodeLine(long), malformed);
    const reader = createLineReader();
    reader.push(Buffer.alloc(maxSocketLineBytes, 'x'));
    assert.throws(() => reader.push(Buffer.from('x')), malformed);
    assert.throws(() => createLineReader().push(Buffer.from(`${JSON.stringify(long)}\n`)), malformed);
  });

  it('are accepted with exactly 64 kB', () => {
    const message = { text: 'x'.repeat(maxSocketLineBytes - '{"text":""}'.length) };
    assert.deepEqual(createLineReader().push(Buffer.from(encodeLine(message))), [message]);
  });

  for (const [what, line] of [
    ['no JSON', Buffer.from('hello\n')],
    ['an array', Buffer.from('[1]\n')],
    ['null', Buffer.from('null\n')],
    ['an empty line', Buffer.from('\n')],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22, 0x0a])],
  ] as const) {
    it(`with ${what} are refused`, () => {
      assert.throws(() => createLineReader().push(line), malformed);
    });
  }
});

describe('the greeting', () => {
  it('has the version', () => {
    const [hello] = createLineReader().push(Buffer.from(helloLine('0.1.0')));
    assert.deepEqual(parseHello(hello!), { version: '0.1.0' });
  });

  it('is rejected for another protocol', () => {
    for (const message of [
      {},
      { writ: 2, version: '9' },
      { writ: 1 },
      { writ: 1, version: 'x'.repeat(65) },
    ]) {
      assert.throws(() => parseHello(message), malformed);
    }
  });
});
