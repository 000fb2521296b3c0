// A log line at a terminal: its order, and the escapes of control characters.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { humanLine } from '../../../../src/platform/telemetry/log-lines.js';

const time = '2026-11-26T20:31:05.123Z';

function lineOf(facts: object, level = 30, msg = 'cycle ended'): string {
  const ofPino = { level, time, pid: 1, hostname: 'edge', name: 'writ-agent', ...facts, msg };
  return humanLine(JSON.stringify(ofPino), 'none');
}

describe('a log line for people', () => {
  it('has the time, the level as a word, the message and its facts, and nothing that every line has', () => {
    const line = lineOf({ cycle: 'c-1', tookMs: 12, reason: 'by hand' });
    assert.equal(line, '2026-11-26 20:31:05Z  info   cycle ended  cycle=c-1 tookMs=12 reason="by hand"\n');
  });

  it('shows each level as a word, and colours only this word', () => {
    const words = [10, 20, 30, 40, 50, 60].map((level) => lineOf({}, level).split(/ +/)[2]);
    assert.deepEqual(words, ['trace', 'debug', 'info', 'warn', 'ERROR', 'FATAL']);
    const coloured = humanLine(JSON.stringify({ level: 50, time, msg: 'no' }), 'level');
    assert.equal(coloured, '2026-11-26 20:31:05Z  \u001b[31mERROR\u001b[39m  no\n');
  });

  it('shows the plain members of an object, the count of a list of objects, and no empty value', () => {
    const result = {
      schema: 1,
      type: 'pull.result',
      cycle: 'c-1',
      generation: 3,
      bundles: [{}],
      inner: { a: 1 },
    };
    const line = lineOf({
      cycle: 'c-1',
      result,
      workers: [{}, {}],
      groups: ['a', 'b'],
      warnings: [],
      none: null,
    });
    assert.ok(line.endsWith('  cycle ended  cycle=c-1 result.generation=3 workers=2 groups=a,b\n'), line);
  });

  it('escapes control characters in keys, facts, messages and stacks', () => {
    const stack = 'Error: x\n    at \u001b[2Jhere (a.js:1)\n    at there';
    const facts = {
      'k\u001b[1m': 'v\u0007',
      revision: 'a\nb',
      err: { type: 'Error', message: 'x\u202e', stack },
    };
    const line = lineOf(facts, 40, 'm\r\u001b]0;t\u0007');
    assert.doesNotMatch(line, /[^\n\x20-\x7e]/);
    const [first, ...rest] = line.trimEnd().split('\n');
    assert.ok(first?.includes('revision="a\\nb"') && first.includes('err=x\\u{202e}'), first);
    assert.deepEqual(rest, ['    at \\u{1b}[2Jhere (a.js:1)', '    at there']);
  });

  it('has the code and the hint of an error with a code, and no stack', () => {
    const err = { type: 'WritError', message: 'no room', code: 'DISK_FULL', hint: 'Free some.', facts: {} };
    assert.ok(lineOf({ err }).endsWith(' err="no room" code=DISK_FULL hint="Free some."\n'), lineOf({ err }));
  });

  it('bounds each fact and each stack', () => {
    const stack = ['Error: x', ...Array.from({ length: 50 }, (_, at) => `    at f${at} (a.js)`)].join('\n');
    const lines = lineOf({ long: 'x'.repeat(5000), err: { type: 'Error', message: 'x', stack } })
      .trimEnd()
      .split('\n');
    assert.equal(lines.length, 21);
    assert.ok((lines[0] ?? '').length < 400);
  });
});
