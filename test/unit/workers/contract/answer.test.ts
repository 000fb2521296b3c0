import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { notified, tailOf } from '../../../../src/workers/contract/answer.js';
import { parseXmlRpcAnswer } from '../../../../src/workers/protocols/xml-rpc.js';
import { createExpectation } from '../../../../src/workers/shared/expectation.js';

/** The most bytes that a driver reads. */
const flood = 64_000;

/** Limit for the main thread. Slow patterns took seconds for these inputs. */
const maxBlockedMs = 1000;

/** Measured as processor time, which does not depend on the load of the machine. */
function blockedMs(act: () => unknown): number {
  const before = process.cpuUsage();
  act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe('an answer', () => {
  it('is one line, without blank lines', () => {
    assert.equal(notified(' a \r\n\n  \n\tb c \n').text, 'a | b c');
    assert.equal(notified('\n \n').text, '');
  });

  it('has no characters that control a terminal', () => {
    assert.equal(notified('a\u001b[2J\u202eb').text, 'a\uFFFD[2J\uFFFDb');
  });

  it('of spaces is shortened at once', () => {
    const spaces = `x${' '.repeat(flood)}x`;
    assert.ok(blockedMs(() => tailOf(spaces, 10)) < maxBlockedMs);
  });

  it('that is expected may end with line ends only', () => {
    const { judge } = createExpectation({ expect: 'ok\n' });
    const asIs = (text: string): string => text;
    for (const text of ['ok', 'ok\n', 'ok\r\n\n\r\n']) assert.equal(judge(text, asIs), 'match', text);
    for (const text of ['ok\r', 'ok ', '\nok', 'ok\n\r', 'o\nk'])
      assert.equal(judge(text, asIs), 'no-match', text);
  });

  it('of line ends is judged at once', () => {
    const { judge } = createExpectation({ expect: 'ok' });
    const lines = `${'\n'.repeat(flood)}x`;
    assert.ok(blockedMs(() => judge(lines, (text) => text)) < maxBlockedMs);
  });

  it('of white space in XML is read at once', () => {
    const xml = `<methodResponse><params><param><value>${' '.repeat(4_000_000)}</value>`;
    assert.ok(blockedMs(() => assert.equal(parseXmlRpcAnswer(xml).kind, 'malformed')) < 400);
  });
});
