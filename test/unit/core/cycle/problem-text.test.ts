import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { problemText } from '../../../../src/core/cycle/problem-text.js';

const problem = (output?: unknown) => ({
  code: 'CHECK_FAILED' as const,
  message: 'zones parse says no',
  hint: '',
  facts: { output },
});

describe('#problemText', () => {
  it('appends the output of the command to the message, without empty lines', () => {
    const text = problemText(problem('warning: few descriptors\n\nblock.rpz:6: invalid IPv4 address\n'), 20);
    assert.deepEqual(text.split('\n'), [
      'zones parse says no',
      'warning: few descriptors',
      'block.rpz:6: invalid IPv4 address',
    ]);
  });

  it('counts the omitted lines, and keeps the end, where compilers print the error', () => {
    const text = problemText(problem('a\nb\nc\nd\nerror'), 3);
    assert.deepEqual(text.split('\n'), ['zones parse says no', 'a', '(2 more lines)', 'd', 'error']);
  });

  it('is the message alone if it ends with the only line of the output', () => {
    const { message } = problem();
    assert.equal(problemText(problem('no\n'), 5), message);
    assert.equal(problemText(problem('no\nbye'), 5), `${message}\nno\nbye`);
  });

  it('is the message alone without output', () => {
    for (const output of [undefined, 7, '', '\n'])
      assert.equal(problemText(problem(output), 5), 'zones parse says no');
  });
});
