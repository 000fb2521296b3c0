// The connection of one native worker: its greeting, its name, its notifications and its answers. Owns one socket. The driver chooses
// the generation and the id of the worker.
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
import { type OpenNotification, OpenNotifications, waitForAnswer } from './native-questions.js';

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the worker sent its name. It can be notified from then on. */
  readonly onHello: (hello: Pick<HelloMessage, 'name' | 'pid'>) => void;
  /** Called for an answer without a waiting caller: to a notification without a deadline, or after its deadline. */
  readonly onLateAnswer: (generation: number, answer: Answer) => void;
  /** Called when the worker did not answer a ping in time, although it announced that it answers pings. */
  readonly onSilence?: (reason: string) => void;
  readonly onClose: () => void;
}

export interface NativeConnection {
  /** Notifies without waiting. The answer is reported to onLateAnswer. */
  notify(target: Target): void;
  /** Notifies, unless a notification of the same target is open, and waits for the answer. */
  ask(options: ResetOptions): Promise<Answer>;
  close(): void;
}

/** A worker sends hello at once. A connection without it only takes a place. */
const helloTimeoutMs = 10_000;
/** Unread bytes after which the worker is assumed to have stopped reading. */
const maxUnreadBytes = 262_144;

/** Serves one accepted socket until it closes. Never throws because of the worker. */
export function serveNativeWorker(socket: Socket, options: ConnectionOptions): NativeConnection {
  const { clock, log } = options;
  const questions = new OpenNotifications();
  const closed = new AbortController();
  const pings = createPings({
    clock,
    signal: closed.signal,
    send: (id) => socket.write(encodeLine({ type: 'ping', id })),
    // A worker that loads a policy may be busy, so that the deadline of its answer decides, not a ping.
    isBusy: () => questions.isAwaited(),
    onSilence: (reason) => options.onSilence?.(reason),
  });
  const dialogue = createDialogue(questions, pings, options);

  const end = (error: WritError): void => {
    log.warn({ code: error.code, facts: error.facts }, `native worker disconnected: ${error.message}`);
    socket.destroy();
  };
  const put = (target: Target): OpenNotification => {
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

/** Checks the order of messages: greeting, hello, then answers. `take` throws WritError for a message out of order. */
function createDialogue(
  questions: OpenNotifications,
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
    const received = parseWorkerMessage(message);
    if ((received.type === 'hello') !== (state === 'hello'))
      throw stuck(`sends ${received.type} out of turn`);
    if (received.type === 'hello') {
      state = 'answers';
      options.onHello(received);
      if (received.ping === true) void pings.run();
      return;
    }
    if (received.type === 'pong') takePong(pings, received);
    else takeAnswer(questions, received, options);
  };
  return { take, hasName: () => state === 'answers' };
}

/** @throws WritError MESSAGE_MALFORMED */
function takePong(pings: Pings, { id }: PongMessage): void {
  if (!pings.answer(id)) throw stuck('answers a ping that was never sent');
}

function takeAnswer(
  questions: OpenNotifications,
  received: AckMessage | NackMessage,
  { onLateAnswer }: Pick<ConnectionOptions, 'onLateAnswer'>,
): void {
  const late = questions.answer(received);
  if (late !== undefined) onLateAnswer(received.generation, late);
}

function stuck(what: string): WritError {
  return new WritError('MESSAGE_MALFORMED', `it ${what}`);
}
