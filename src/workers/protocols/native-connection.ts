// One connected native worker: its greeting, its name, what it is notified of and what it answers. Owns one socket;
// which generation it is, and which id the worker has, is the driver's.
import type { Socket } from 'node:net';
import { toWritError, WritError } from '../../core/errors.js';
import {
  type AckMessage,
  type HelloMessage,
  type NackMessage,
  type PongMessage,
  parseWorkerMessage,
} from '../../core/protocol/native-protocol.js';
import {
  createLineReader,
  encodeLine,
  helloLine,
  parseHello,
  type SocketMessage,
} from '../../core/protocol/socket-protocol.js';
import { writVersion } from '../../core/version.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { unreachable } from '../contract/answer.js';
import type { Answer, ResetOptions, Target } from '../contract/driver.js';
import { createPings, type Pings } from './native-pings.js';
import { type Question, Questions, waitForAnswer } from './native-questions.js';

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** The worker has said who it is: from now on it can be notified. */
  readonly onHello: (hello: Pick<HelloMessage, 'name' | 'pid'>) => void;
  /** An answer that nobody waits for: to a question without a deadline, or after it. */
  readonly onLateAnswer: (generation: number, answer: Answer) => void;
  /** The worker announced that it answers pings, and did not answer one in time. */
  readonly onSilence?: (reason: string) => void;
  readonly onClose: () => void;
}

export interface NativeConnection {
  /** Notifies and does not wait; the answer is reported as a late one. */
  notify(target: Target): void;
  /** Notifies, unless this very target is on its way already, and waits for the answer. */
  ask(options: ResetOptions): Promise<Answer>;
  close(): void;
}

/** A worker says hello at once: who stays silent only holds a place. */
const helloTimeoutMs = 10_000;
/** Unread bytes after which a worker has stopped reading. */
const maxUnreadBytes = 262_144;

/** Serves one accepted socket until it closes. Never throws for what the worker does. */
export function serveNativeWorker(socket: Socket, options: ConnectionOptions): NativeConnection {
  const { clock, log } = options;
  const questions = new Questions();
  const closed = new AbortController();
  const pings = createPings({
    clock,
    signal: closed.signal,
    send: (id) => socket.write(encodeLine({ type: 'ping', id })),
    // A worker that takes a policy over may be busy: the deadline of its answer decides.
    isBusy: () => questions.isAwaited(),
    onSilence: (reason) => options.onSilence?.(reason),
  });
  const dialogue = createDialogue(questions, pings, options);

  const end = (error: WritError): void => {
    log.warn({ code: error.code, facts: error.facts }, `native worker disconnected: ${error.message}`);
    socket.destroy();
  };
  const put = (target: Target): Question => {
    const { question, isNew } = questions.put(target);
    const { type, id, generation, path } = question;
    if (isNew && !socket.destroyed) socket.write(encodeLine({ type, id, generation, path }));
    if (socket.writableLength > maxUnreadBytes) end(stuck('does not read what it is sent'));
    return question;
  };

  const reader = createLineReader();
  socket.on('data', (chunk: Buffer) => {
    if (socket.destroyed) return;
    try {
      for (const message of reader.push(chunk)) dialogue.take(message);
    } catch (error) {
      end(toWritError(error));
    }
  });
  socket.on('close', () => {
    closed.abort();
    questions.close();
    options.onClose();
  });
  socket.write(helloLine(writVersion));
  void clock.sleep(helloTimeoutMs, closed.signal).then(() => {
    if (!dialogue.hasName() && !socket.destroyed) end(stuck('sends no hello'));
  });
  return {
    notify: (target) => void put(target),
    ask: async (reset) => {
      const question = put(reset.target);
      if (socket.destroyed) return unreachable('disconnected');
      return waitForAnswer(question, reset, clock);
    },
    close: () => socket.destroy(),
  };
}

/** The order of what a worker says: greeting, hello, then answers. `take` throws WritError for what may not be said now. */
function createDialogue(
  questions: Questions,
  pings: Pings,
  options: Pick<ConnectionOptions, 'onHello' | 'onLateAnswer'>,
): { take: (message: SocketMessage) => void; hasName: () => boolean } {
  let state: 'greeting' | 'hello' | 'answers' = 'greeting';
  const take = (message: SocketMessage): void => {
    if (state === 'greeting') {
      parseHello(message);
      state = 'hello';
      return;
    }
    const said = parseWorkerMessage(message);
    if ((said.type === 'hello') !== (state === 'hello')) throw stuck(`says ${said.type} out of turn`);
    if (said.type === 'hello') {
      state = 'answers';
      options.onHello(said);
      if (said.ping === true) void pings.run();
      return;
    }
    if (said.type === 'pong') takePong(pings, said);
    else takeAnswer(questions, said, options);
  };
  return { take, hasName: () => state === 'answers' };
}

/** @throws WritError MESSAGE_MALFORMED */
function takePong(pings: Pings, { id }: PongMessage): void {
  if (!pings.answer(id)) throw stuck('answers a ping that was never sent');
}

function takeAnswer(
  questions: Questions,
  said: AckMessage | NackMessage,
  { onLateAnswer }: Pick<ConnectionOptions, 'onLateAnswer'>,
): void {
  const late = questions.answer(said);
  if (late !== undefined) onLateAnswer(said.generation, late);
}

function stuck(what: string): WritError {
  return new WritError('MESSAGE_MALFORMED', `it ${what}`);
}
