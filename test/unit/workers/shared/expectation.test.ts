import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createExpectation } from '../../../../src/workers/shared/expectation.js';

const values: Readonly<Record<string, string>> = {
  '{generation}': '12',
  '{current}': '/srv/a.b/generations/12',
  '{worker}': 'w(1',
};
const fill = (text: string): string => text.replace(/\{[a-z]+\}/g, (one) => values[one] ?? one);

describe('#createExpectation', () => {
  const cases = [
    ['"generation": ?{generation}', '{"generation": 12}', 'match'],
    ['"generation": ?{generation}', '{"generation":12,"ok":true}', 'match'],
    ['"generation": ?{generation}', '{"generation": 11}', 'no-match'],
    ['"generation": ?{generation}', '{"generation": 123}', 'no-match'],
    ['g{generation}', 'g012', 'no-match'],
    ['^{current}$', '/srv/a.b/generations/12', 'match'],
    ['^{current}$', '/srv/axb/generations/12', 'no-match'],
    ['{worker} is up', 'w(1 is up', 'match'],
    ['^[0-9]{2} {worker}+$', '00 w(1w(1', 'match'],
  ] as const;
  for (const [expectMatch, answer, met] of cases) {
    it(`takes ${answer} for ${met} where ${expectMatch} is expected`, () => {
      assert.equal(createExpectation({ expectMatch }).judge(answer, fill), met);
    });
  }

  it('fills the generation of each answer, not that of the first', () => {
    const expectation = createExpectation({ expectMatch: '^{generation}$' });
    assert.equal(expectation.judge('12', fill), 'match');
    assert.equal(
      expectation.judge('13', () => '13'),
      'match',
    );
  });

  for (const expectMatch of ['{generatoin}', '\\{generation}', '(']) {
    it(`refuses ${expectMatch}`, () => {
      assert.throws(() => createExpectation({ expectMatch }), { code: 'CONFIG_INVALID' });
    });
  }
});
