import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  indented,
  logLines,
  minuteTime,
  roughly,
  secondTime,
  table,
} from '../../../../src/cli/show/show-text.js';

describe('the texts of times', () => {
  it('are in UTC in every time zone of the host', () => {
    const atMs = Date.UTC(2026, 10, 21, 14, 32, 5);
    assert.equal(secondTime(atMs), '2026-11-21 14:32:05');
    assert.equal(minuteTime(atMs), '2026-11-21 14:32 UTC');
  });

  it('are a dash for a time outside the calendar', () => {
    assert.deepEqual(
      [secondTime, minuteTime].map((text) => text(Number.MAX_SAFE_INTEGER)),
      ['-', '-'],
    );
  });

  for (const [ms, text] of [
    [-5, '0 s'],
    [0, '0 s'],
    [999, '0 s'],
    [40_000, '40 s'],
    [60_000, '1 min'],
    [260_000, '4 min 20 s'],
    [3_600_000, '1 h'],
    [5_400_000, '1 h 30 min'],
    [86_400_000, '1 d'],
    [200_000_000, '2 d'],
  ] as const) {
    it(`${ms} ms is "${text}"`, () => assert.equal(roughly(ms), text));
  }
});

describe('a table', () => {
  it('aligns by the visible width and leaves no space at the end of a line', () => {
    assert.deepEqual(
      table(
        ['a', { right: 'n' }, 'z'],
        [
          ['grün', '1', ''],
          ['b', '100', 'x'],
        ],
      ),
      ['  a       n  z', '  grün    1', '  b     100  x'],
    );
  });

  it('keeps its columns under wide characters, marks and escapes', () => {
    const rows = ['日本', 'u\u0308ber', '\u001b'].map((name) => [name, 'x']);
    assert.deepEqual(table(['worker', 'z'], rows), [
      '  worker  z',
      '  日本    x',
      '  u\u0308ber    x',
      '  \\u{1b}  x',
    ]);
  });
});

describe('a text of several lines', () => {
  it('is indented, without empty lines, and cut with a count', () => {
    assert.deepEqual(indented('a\n\n\tb  \nc\nd', '  ', 2), ['  a', '    b', '  (2 more lines)']);
    assert.deepEqual(indented('', '  ', 2), []);
  });
});

describe('lost lines of the log of an agent', () => {
  it('have a line with their number and the cause, if there are some', () => {
    assert.deepEqual(logLines({}), []);
    assert.deepEqual(logLines({ logLosses: { lines: 12, code: 'ENOSPC' } }), [
      '  log       12 lines since the start of the agent could not be written [ENOSPC]',
    ]);
  });
});
