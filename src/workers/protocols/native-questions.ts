// The generations one native worker was told, each until its answer: matches answers to questions by id.
// Owns who waits for which answer; never writes to a socket and never judges.

import { WritError } from '../../core/errors.js';
import type { AckMessage, GenerationMessage, NackMessage } from '../../core/protocol/native-protocol.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { confirmed, refused, unreachable } from '../contract/answer.js';
import type { Answer, ResetOptions, Target } from '../contract/driver.js';

/** Questions whose answer is still understood; the answer to an older one is ignored. */
const maxOpenQuestions = 64;

export interface Question extends GenerationMessage {
  readonly waiting: Set<(answer: Answer) => void>;
}

export interface Questions {
  /** @returns the question for this target: the last one while it is open and the same, else a new one */
  put(target: Target): { readonly question: Question; readonly isNew: boolean };
  /**
   * Hands an answer to all who wait for it.
   * @returns the answer when nobody waits, else undefined
   * @throws WritError MESSAGE_MALFORMED for an answer to what was never asked
   */
  answer(message: AckMessage | NackMessage): Answer | undefined;
  /** Nobody will answer any more. */
  close(): void;
}

export function createQuestions(): Questions {
  const open = new Map<number, Question>();
  let lastId = 0;
  const settleAll = (text: string): void => {
    for (const { waiting } of open.values()) {
      for (const settle of waiting) settle(unreachable(text));
    }
  };
  return {
    put: (target) => {
      const last = open.get(lastId);
      if (last?.generation === target.generation && last.path === target.path) {
        return { question: last, isNew: false };
      }
      // Who is told something newer is not waited for: its answer to the old question decides nothing now.
      settleAll(`superseded by generation ${target.generation}`);
      const [oldest] = open.keys();
      if (oldest !== undefined && open.size >= maxOpenQuestions) open.delete(oldest);
      lastId += 1;
      const { generation, path } = target;
      const question: Question = { type: 'generation', id: lastId, generation, path, waiting: new Set() };
      open.set(lastId, question);
      return { question, isNew: true };
    },
    answer: (message) => {
      const question = open.get(message.id);
      const isAsked =
        message.id <= lastId && (question?.generation ?? message.generation) === message.generation;
      if (!isAsked) throw unasked(message);
      if (question === undefined) return undefined;
      open.delete(message.id);
      const answer = message.type === 'ack' ? confirmed('ack') : refused(message.reason);
      // A worker that was taken back and forth may answer an old question about the generation it is to use again.
      if (message.id !== lastId) return undefined;
      if (question.waiting.size === 0) return answer;
      for (const settle of question.waiting) settle(answer);
      return undefined;
    },
    close: () => settleAll('disconnected before it answered'),
  };
}

/** Waits for the answer to a question until the deadline; an answer after it finds nobody waiting. */
export function waitForAnswer(question: Question, reset: ResetOptions, clock: Clock): Promise<Answer> {
  const settled = new AbortController();
  const waiting = joinSignals(settled.signal, reset.signal);
  return new Promise((resolve) => {
    const settle = (answer: Answer): void => {
      question.waiting.delete(settle);
      settled.abort();
      waiting[Symbol.dispose]();
      resolve(answer);
    };
    question.waiting.add(settle);
    void clock
      .sleep(reset.timeoutMs, waiting.signal)
      .then(() =>
        settle(unreachable(reset.signal?.aborted ? 'aborted' : `no answer in ${reset.timeoutMs} ms`)),
      );
  });
}

function unasked(message: AckMessage | NackMessage): WritError {
  const { id, generation } = message;
  return new WritError('MESSAGE_MALFORMED', 'a native worker answers what it was not told', {
    facts: { id, generation },
  });
}
