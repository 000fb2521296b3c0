// The judgement on which every cell of docs/truth.md stands.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judge, type Said, type Sight, type Verdict, type Word, wordOf, worstOf } from './judge.js';

const sight: Sight = { release: 'good', refused: false, active: 'v2', served: 'v2', word: 'confirmed' };

describe('the verdict on a moment', () => {
  const table: readonly (readonly [Word, served: string | undefined, Verdict, because: string])[] = [
    ['confirmed', 'v2', '=', 'it is confirmed, and served'],
    ['confirmed', 'v1', 'BETTER', 'another one is served'],
    ['confirmed', undefined, 'BETTER', 'nobody serves'],
    ['confirmed', 'v2+v1', 'BETTER', 'a part of it is served'],
    ['unconfirmed', 'v2', '=(u)', 'it is served, and nobody proved it'],
    ['unconfirmed', 'v1', '=(u)', 'Writ claims nothing'],
    ['unconfirmed', undefined, '=(u)', 'Writ claims nothing'],
    ['trouble', 'v1', '=', 'Writ says that something is wrong, and it is'],
    ['trouble', undefined, '=', 'Writ says that something is wrong, and it is'],
    ['trouble', 'v2', '=(u)', 'Writ knows less than is true'],
    ['nothing', 'v2', '=(u)', 'Writ claims nothing, and all is well'],
    ['nothing', 'v1', 'BETTER', 'whoever hears nothing believes that all is well'],
    ['nothing', undefined, 'BETTER', 'whoever hears nothing believes that all is well'],
  ];
  for (const [word, served, verdict, because] of table) {
    it(`is ${verdict} where Writ says ${word} and ${served ?? 'nothing'} is served: ${because}`, () => {
      assert.equal(judge({ ...sight, word, served }), verdict);
    });
  }

  it('is WORSE for a good release that was refused, whatever else is true', () => {
    for (const word of ['confirmed', 'unconfirmed', 'trouble', 'nothing'] as const) {
      assert.equal(judge({ ...sight, word, active: 'v1', served: 'v1', refused: true }), 'WORSE');
    }
  });

  it('is none the worse for a bad release that was refused', () => {
    const back = { ...sight, release: 'bad', refused: true, active: 'v1', served: 'v1' } as const;
    assert.equal(judge(back), '=');
    assert.equal(judge({ ...back, served: undefined }), 'BETTER');
  });

  it('takes nothing active and nothing served for no agreement that could be confirmed', () => {
    const empty = { ...sight, active: undefined, served: undefined };
    assert.equal(judge({ ...empty, word: 'confirmed' }), 'BETTER');
    assert.equal(judge({ ...empty, word: 'trouble' }), '=');
  });
});

describe('the word that a reader takes from pull, status and health', () => {
  const said: Said = { exitCode: 0, confirmed: false, findings: [] };
  const table: readonly (readonly [Partial<Said>, Word])[] = [
    [{ confirmed: true }, 'confirmed'],
    [{ confirmed: true, exitCode: 5, findings: ['PROBE_FAILED'] }, 'confirmed'],
    [{ findings: ['WORKER_UNCONFIRMED'] }, 'unconfirmed'],
    [{ findings: ['NO_AGENT', 'WORKER_UNCONFIRMED', 'REMEMBERED_REFUSAL'] }, 'unconfirmed'],
    [{ findings: ['WORKER_UNCONFIRMED', 'WORKERS_MISSING'] }, 'trouble'],
    [{ findings: ['WORKER_UNREACHABLE'] }, 'trouble'],
    [{ exitCode: 4 }, 'trouble'],
    [{ exitCode: null }, 'trouble'],
    [{ exitCode: 3, findings: ['WORKER_UNCONFIRMED'] }, 'trouble'],
    [{}, 'nothing'],
    [{ findings: ['NO_AGENT'] }, 'nothing'],
    [{ findings: ['REMEMBERED_REFUSAL'] }, 'nothing'],
  ];
  for (const [more, word] of table) {
    it(`is ${word}: ${JSON.stringify(more)}`, () => assert.equal(wordOf({ ...said, ...more }), word));
  }
});

describe('the verdict on a case', () => {
  it('is that of its worst moment: a word too much is worse than anything that was played', () => {
    assert.equal(worstOf(['=', '=(u)']), '=(u)');
    assert.equal(worstOf(['=', 'BETTER', 'WORSE']), 'BETTER');
    assert.equal(worstOf(['WORSE', '=(u)', '=']), 'WORSE');
    assert.equal(worstOf(['BETTER', '?']), '?');
  });

  it('is none where nobody looked', () => assert.equal(worstOf([]), '-'));
});
