// The open notifications of one native worker. Matches answers to notifications by id. Owns the waiting callers; writes to no socket
// and does not judge answers.

import { WritError } from '../../core/errors.js';
import type { AckMessage, GenerationMessage, NackMessage } from '../../core/protocol/native-protocol.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { confirmed, refused, unreachable } from '../contract/answer.js';
import type { Answer, ResetOptions, Target } from '../contract/driver.js';

/** Notifications that still accept an answer. Answers to older ones are ignored. */
const maxOpenQuestions = 64;

export interface OpenNotification extends GenerationMessage {
  readonly waiting: Set<(answer: Answer) => void>;
}

export class OpenNotifications {
  readonly #open = new Map<number, OpenNotification>();
  #lastId = 0;

  /** @returns the notification of this target: the last one if it is open and has the same target, otherwise a new one */
  put({ generation, path }: Target): { readonly question: OpenNotification; readonly isNew: boolean } {
    const last = this.#open.get(this.#lastId);
    if (last?.generation === generation && last.path === path) return { question: last, isNew: false };
    // After a newer notification, an answer to the previous one has no effect, so its callers stop waiting.
    this.#settleAll(`superseded by generation ${generation}`);
    const [oldest] = this.#open.keys();
    if (oldest !== undefined && this.#open.size >= maxOpenQuestions) this.#open.delete(oldest);
    this.#lastId += 1;
    const id = this.#lastId;
    const question: OpenNotification = { type: 'generation', id, generation, path, waiting: new Set() };
    this.#open.set(id, question);
    return { question, isNew: true };
  }

  /**
   * Passes an answer to all waiting callers.
   * @returns the answer if no caller waits; otherwise undefined
   * @throws WritError MESSAGE_MALFORMED for an answer without a notification
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
    // After several moves a worker may answer an old notification of the generation that is active again.
    if (id !== this.#lastId) return undefined;
    if (question.waiting.size === 0) return answer;
    for (const settle of question.waiting) settle(answer);
    return undefined;
  }

  /** @returns whether a notification waits for its answer */
  isAwaited(): boolean {
    return [...this.#open.values()].some(({ waiting }) => waiting.size > 0);
  }

  /** Ends all notifications, because the worker is disconnected. */
  close(): void {
    this.#settleAll('disconnected before it answered');
  }

  #settleAll(text: string): void {
    for (const { waiting } of this.#open.values()) for (const settle of waiting) settle(unreachable(text));
  }
}

/** Waits for an answer until the deadline. A later answer has no waiting caller. */
export function waitForAnswer(
  question: OpenNotification,
  reset: ResetOptions,
  clock: Clock,
): Promise<Answer> {
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
