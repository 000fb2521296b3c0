// The rule that decides whether a state directory is the right one: one row for each combination that can happen.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  judgeMark,
  type MarkFacts,
  type MarkVerdict,
  markText,
  parseKnownMark,
  parseMark,
  type VanishedReason,
} from '../../../../src/agent/state-mark/state-mark-rules.js';

const here = { device: 1n, inode: 2n };
const mark = 'a'.repeat(32);
const other = 'b'.repeat(32);
const right: MarkVerdict = { kind: 'right', mark };
const vanished = (because: VanishedReason): MarkVerdict => ({ kind: 'vanished', because });

const base: MarkFacts = { found: here, opened: here, mark, known: mark, hasPolicy: true };

const rows: readonly [name: string, facts: Partial<MarkFacts>, verdict: MarkVerdict][] = [
  ['the same directory with the same mark is right', {}, right],
  [
    'a reboot, which knows no mark, accepts the mark of the directory',
    { known: undefined, opened: undefined },
    right,
  ],
  ['a new host gets a mark', { known: undefined, mark: undefined, hasPolicy: false }, { kind: 'unmarked' }],
  [
    'a new host without a directory is no alarm',
    { known: undefined, opened: undefined, found: undefined },
    { kind: 'unmarked' },
  ],
  [
    'a policy without a mark gets one, on an upgrade',
    { known: undefined, mark: undefined },
    { kind: 'unmarked' },
  ],
  ['a policy without a mark gets one, from an old backup', { mark: undefined }, { kind: 'unmarked' }],
  [
    'a directory without mark and policy has vanished',
    { mark: undefined, hasPolicy: false },
    vanished('empty'),
  ],
  ['a path without a directory has vanished', { found: undefined }, vanished('absent')],
  [
    'a path without a directory has vanished for a new process too',
    { found: undefined, opened: undefined },
    vanished('absent'),
  ],
  [
    'a process that opened it misses its directory also without a mark',
    { found: undefined, known: undefined },
    vanished('absent'),
  ],
  [
    'another inode has vanished, with the same mark too',
    { found: { device: 1n, inode: 3n } },
    vanished('replaced'),
  ],
  ['another device has vanished', { found: { device: 2n, inode: 2n } }, vanished('replaced')],
  ['another mark has vanished', { mark: other }, vanished('other')],
  ['a restored directory with the same mark is right for a new process', { opened: undefined }, right],
];

describe('the rule of the state directory', () => {
  for (const [name, facts, verdict] of rows)
    it(name, () => assert.deepEqual(judgeMark({ ...base, ...facts }), verdict));
});

describe('the file of a mark', () => {
  it('is read as it was written', () => {
    assert.equal(parseMark(markText(mark)), mark);
    assert.equal(parseKnownMark(markText(mark, { boot: 'x' }), 'x'), mark);
  });

  it('is invalid with a flipped bit, so that it is not read as another mark', () => {
    assert.equal(parseMark(markText(mark).replace('aaaa', 'aaab')), undefined);
  });

  it('counts for its own boot only', () => {
    assert.equal(parseKnownMark(markText(mark, { boot: 'x' }), 'y'), undefined);
    assert.equal(parseKnownMark(markText(mark), 'y'), undefined);
  });

  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '{"writ":1}',
    `{"writ":2,"mark":"${mark}"}`,
    `{"writ":1,"mark":"${mark}0"}`,
  ])
    it(`is no mark as ${JSON.stringify(text)}`, () => assert.equal(parseMark(text), undefined));
});
