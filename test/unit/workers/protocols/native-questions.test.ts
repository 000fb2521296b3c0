import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OpenNotifications } from '../../../../src/workers/protocols/native-questions.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';

const target = (generation: number): { generation: number; path: string } => ({
  generation,
  path: `/policy/generations/${generation}`,
});

describe('a question', () => {
  it('is another one for another path of the same generation', () => {
    const questions = new OpenNotifications();
    const first = questions.put(target(1));
    assert.deepEqual(
      [questions.put(target(1)).isNew, questions.put(target(1)).question],
      [false, first.question],
    );
    assert.equal(questions.put({ generation: 1, path: '/elsewhere/1' }).isNew, true);
  });

  it('has no answer before it was asked', () => {
    const questions = new OpenNotifications();
    questions.put(target(1));
    throwsCode('MESSAGE_MALFORMED', () => questions.answer({ type: 'ack', id: 2, generation: 1 }));
  });
});

describe('questions that a worker leaves open', () => {
  it('are forgotten from the oldest on: no worker can make them grow', () => {
    const questions = new OpenNotifications();
    const ask = (count: number, from: number): void => {
      for (let at = 0; at < count; at += 1) questions.put(target(from + at));
    };
    ask(64, 1);
    // What is open is known, down to the generation that it was about.
    throwsCode('MESSAGE_MALFORMED', () => questions.answer({ type: 'ack', id: 1, generation: 99 }));
    ask(1, 65);
    assert.equal(questions.answer({ type: 'ack', id: 1, generation: 99 }), undefined);
    throwsCode('MESSAGE_MALFORMED', () => questions.answer({ type: 'ack', id: 2, generation: 99 }));
  });
});
