// The verdicts of the cells of docs/truth.md.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type CommandResults,
  judge,
  type ReportedState,
  reportedStateOf,
  type Sight,
  type Verdict,
  worstOf,
} from './judge.js';

const sight: Sight = { release: 'good', refused: false, active: 'v2', served: 'v2', reported: 'confirmed' };

describe('the verdict on an observation', () => {
  const table: readonly (readonly [ReportedState, served: string | undefined, Verdict, because: string])[] = [
    ['confirmed', 'v2', '=', 'it is confirmed, and served'],
    ['confirmed', 'v1', 'BETTER', 'another one is served'],
    ['confirmed', undefined, 'BETTER', 'nothing is served'],
    ['confirmed', 'v2+v1', 'BETTER', 'a part of it is served'],
    ['unconfirmed', 'v2', '=(u)', 'it is served without confirmation'],
    ['unconfirmed', 'v1', '=(u)', 'Writ claims nothing'],
    ['unconfirmed', undefined, '=(u)', 'Writ claims nothing'],
    ['trouble', 'v1', '=', 'Writ reports a problem, and there is one'],
    ['trouble', undefined, '=', 'Writ reports a problem, and there is one'],
    ['trouble', 'v2', '=(u)', 'Writ reports less than is true'],
    ['nothing', 'v2', '=(u)', 'Writ claims nothing, and there is no problem'],
    ['nothing', 'v1', 'BETTER', 'no report means no problem to an operator'],
    ['nothing', undefined, 'BETTER', 'no report means no problem to an operator'],
  ];
  for (const [reported, served, verdict, because] of table) {
    it(`is ${verdict} where Writ reports ${reported} and the daemon serves ${served ?? 'nothing'}: ${because}`, () => {
      assert.equal(judge({ ...sight, reported, served }), verdict);
    });
  }

  it('is WORSE for a refused good release, in any other state', () => {
    for (const reported of ['confirmed', 'unconfirmed', 'trouble', 'nothing'] as const) {
      assert.equal(judge({ ...sight, reported, active: 'v1', served: 'v1', refused: true }), 'WORSE');
    }
  });

  it('is not WORSE for a refused bad release', () => {
    const back = { ...sight, release: 'bad', refused: true, active: 'v1', served: 'v1' } as const;
    assert.equal(judge(back), '=');
    assert.equal(judge({ ...back, served: undefined }), 'BETTER');
  });

  it('does not accept a confirmed report without an active and a served release', () => {
    const empty = { ...sight, active: undefined, served: undefined };
    assert.equal(judge({ ...empty, reported: 'confirmed' }), 'BETTER');
    assert.equal(judge({ ...empty, reported: 'trouble' }), '=');
  });
});

describe('the state that pull, status and health report together', () => {
  const results: CommandResults = { exitCode: 0, confirmed: false, findings: [] };
  const table: readonly (readonly [Partial<CommandResults>, ReportedState])[] = [
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
  for (const [more, reported] of table) {
    it(`is ${reported}: ${JSON.stringify(more)}`, () =>
      assert.equal(reportedStateOf({ ...results, ...more }), reported));
  }
});

describe('the verdict on a case', () => {
  it('is that of its worst observation; BETTER is the worst of all', () => {
    assert.equal(worstOf(['=', '=(u)']), '=(u)');
    assert.equal(worstOf(['=', 'BETTER', 'WORSE']), 'BETTER');
    assert.equal(worstOf(['WORSE', '=(u)', '=']), 'WORSE');
    assert.equal(worstOf(['BETTER', '?']), '?');
  });

  it('is none without an observation', () => assert.equal(worstOf([]), '-'));
});
