// The generations one native worker was notified of, each until its answer: matches answers to questions by id.
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

export class Questions {
  readonly #open = new Map<number, Question>();
  #lastId = 0;

  /** @returns the question for this target: the last one while it is open and the same, else a new one */
  put({ generation, path }: Target): { readonly question: Question; readonly isNew: boolean } {
    const last = this.#open.get(this.#lastId);
    if (last?.generation === generation && last.path === path) return { question: last, isNew: false };
    // Who is notified of something newer is not waited for: its answer to the old question decides nothing now.
    this.#settleAll(`superseded by generation ${generation}`);
    const [oldest] = this.#open.keys();
    if (oldest !== undefined && this.#open.size >= maxOpenQuestions) this.#open.delete(oldest);
    this.#lastId += 1;
    const id = this.#lastId;
    const question: Question = { type: 'generation', id, generation, path, waiting: new Set() };
    this.#open.set(id, question);
    return { question, isNew: true };
  }

  /**
   * Hands an answer to all who wait for it.
   * @returns the answer when nobody waits, else undefined
   * @throws WritError MESSAGE_MALFORMED for an answer to what was never asked
   */
  answer(message: AckMessage | NackMessage): Answer | undefined {
    const { id, generation } = message;
    const question = this.#open.get(id);
    const isAsked = id <= this.#lastId && (question?.generation ?? generation) === generation;
    if (!isAsked)
      throw new WritError('MESSAGE_MALFORMED', 'a native worker answers what it was not notified of', {
        facts: { id, generation },
      });
    if (question === undefined) return undefined;
    this.#open.delete(id);
    const answer = message.type === 'ack' ? confirmed('ack') : refused(message.reason);
    // A worker that was taken back and forth may answer an old question about the generation it is to use again.
    if (id !== this.#lastId) return undefined;
    if (question.waiting.size === 0) return answer;
    for (const settle of question.waiting) settle(answer);
    return undefined;
  }

  /** @returns whether a notification waits for its answer */
  isAwaited(): boolean {
    return [...this.#open.values()].some(({ waiting }) => waiting.size > 0);
  }

  /** Nobody will answer any more. */
  close(): void {
    this.#settleAll('disconnected before it answered');
  }

  #settleAll(text: string): void {
    for (const { waiting } of this.#open.values()) for (const settle of waiting) settle(unreachable(text));
  }
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
