// The client of the agent's control socket: connects, greets, asks one question and hands over the answers as
// they come. Every way not to be answered is AGENT_UNREACHABLE with what to do; no answer is interpreted here.

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { type ErrorCode, errorCodes } from '../../core/error-codes.js';
import { isSystemError, WritError } from '../../core/errors.js';
import type { ControlAnswer, ControlRequest } from '../../core/protocol/control-protocol.js';
import {
  createLineReader,
  encodeLine,
  helloLine,
  parseHello,
  type SocketMessage,
} from '../../core/protocol/socket-protocol.js';
import { chooseServiceCommands, type ServiceCommands } from '../../core/status/agent-service.js';
import { agentOwners, requireSafePath } from '../disk/safe-path.js';
import { type Clock, letOthersRun } from '../time/clock.js';
import { joinSignals } from '../time/join-signals.js';
import { requireSocketPath } from './unix-socket.js';

export interface AskOptions {
  readonly socketPath: string;
  /** The agent's state directory: its owner may speak for the host. */
  readonly state: string;
  readonly request: ControlRequest;
  /** Version of this program. */
  readonly version: string;
  readonly clock: Clock;
  /** Longest silence of the agent between two lines. */
  readonly silenceMs: number;
  /** What was typed, as `writ pull`: a hint repeats it behind sudo. */
  readonly commandLine: string;
  /** What starts the agent of this host; left out: its unit. */
  readonly service?: ServiceCommands;
  /** Told once, when the agent has another version. */
  readonly onOtherVersion: (agentVersion: string) => void;
  /** Aborting ends the wait; the agent finishes what it does. */
  readonly signal: AbortSignal;
}

/** Why there is no answer (`facts.reason` of AGENT_UNREACHABLE). Only `not-running` proves that no agent runs. */
export type UnreachableReason = 'not-running' | 'denied' | 'silent' | 'closed' | 'failed';

const finalTypes: readonly string[] = [
  'pull.result',
  'rollback.result',
  'status.result',
  'resume.result',
  'pause.result',
  'verify.result',
  'refusals.result',
  'health.result',
  'end',
];

/**
 * Asks the agent; the last message is the one that ends the answer.
 * @throws WritError AGENT_UNREACHABLE, PATH_UNSAFE, MESSAGE_MALFORMED, INTERRUPTED, and the code of an error that it
 *   answers
 */
export async function* askAgent(options: AskOptions): AsyncGenerator<ControlAnswer> {
  requireSocketPath(options.socketPath);
  requireBelievable(options);
  const socket = await connected(options);
  try {
    socket.write(helloLine(options.version) + encodeLine(options.request));
    let greeted = false;
    for await (const message of messagesOf(socket, options)) {
      if (!greeted) {
        greeted = true;
        greet(message, options);
        continue;
      }
      const { type } = message;
      if (type === 'error') throw errorOf(message);
      yield message as unknown as ControlAnswer;
      // A watcher is sent one status after the other.
      if (options.request.type === 'watch' ? type === 'end' : finalTypes.includes(String(type))) return;
    }
    throw unreachable('closed', 'it closed the connection before its answer was complete', options);
  } finally {
    socket.destroy();
  }
}

/**
 * Node cannot ask who is behind a connection (SO_PEERCRED). Where nobody else can change the name, its owner has bound it:
 * root, we, or who runs the agent; anybody else's answer would be believed by root.
 */
function requireBelievable({ socketPath, state }: AskOptions): void {
  try {
    requireSafePath(socketPath, agentOwners(state));
  } catch (error) {
    // A name that is not there, or not for this user to see: the connection says which.
    if (!isSystemError(error) || error instanceof WritError) throw error;
  }
}

const connectAgainMs = 50;
const maxConnectMs = 5000;

/**
 * Where many connect at a time the system says "again", and nothing of the agent: that is no silence of it. The time counts,
 * and not the tries: on a machine with much to do a pause of 50 ms takes longer.
 */
async function connected(options: AskOptions): Promise<Socket> {
  const { clock, signal } = options;
  const endMs = clock.monotonicMs() + maxConnectMs;
  for (;;) {
    const socket = createConnection({ path: options.socketPath });
    try {
      await answeredInTime(once(socket, 'connect'), maxConnectMs, options, 'it took no connection');
      return socket;
    } catch (error) {
      socket.destroy();
      if (!isSystemError(error)) throw error;
      if (error.code !== 'EAGAIN' || clock.monotonicMs() >= endMs) throw connectionError(error, options);
      await clock.sleep(connectAgainMs, signal);
      if (signal.aborted) throw interrupted();
    }
  }
}

async function* messagesOf(socket: Socket, options: AskOptions): AsyncGenerator<SocketMessage> {
  const reader = createLineReader();
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  for (;;) {
    const chunk = await nextChunk(chunks, options);
    if (chunk.done === true) return;
    yield* reader.push(chunk.value);
  }
}

async function nextChunk(chunks: AsyncIterator<Uint8Array, unknown>, options: AskOptions) {
  try {
    return await answeredInTime(chunks.next(), options.silenceMs, options, 'it said nothing');
  } catch (error) {
    throw isSystemError(error) ? connectionError(error, options) : error;
  }
}

/** @returns what came within the time. @throws WritError AGENT_UNREACHABLE (`silent`), INTERRUPTED */
async function answeredInTime<T>(
  answer: Promise<T>,
  timeoutMs: number,
  options: AskOptions,
  what: string,
): Promise<T> {
  const { clock, signal } = options;
  const settled = new AbortController();
  using waiting = joinSignals(settled.signal, signal);
  const silence = clock.sleep(timeoutMs, waiting.signal).then(async (): Promise<never> => {
    if (signal.aborted) throw interrupted();
    // Who was stopped, or got no turn, is told of the time before it is told of what has come. The rest of this turn, and a
    // whole one: then all that is in the socket has been read.
    await letOthersRun();
    await letOthersRun();
    throw unreachable('silent', `${what} for ${timeoutMs / 1000} s`, options);
  });
  try {
    return await Promise.race([answer, silence]);
  } finally {
    settled.abort();
  }
}

function interrupted(): WritError {
  return new WritError('INTERRUPTED', 'the command was interrupted');
}

function greet(message: SocketMessage, options: AskOptions): void {
  // An agent that is ending may answer with an error at once.
  if (message['type'] === 'error') throw errorOf(message);
  const { version } = parseHello(message);
  if (version !== options.version) options.onOtherVersion(version);
}

function errorOf(message: SocketMessage): WritError {
  const { code, message: text, hint, facts } = message;
  const known = typeof code === 'string' && Object.hasOwn(errorCodes, code);
  // A code of a later version is a failure like any other.
  const words = known ? String(text) : `${String(code)}: ${String(text)}`;
  return new WritError(known ? (code as ErrorCode) : 'INTERNAL', words, {
    ...(typeof hint === 'string' ? { hint } : {}),
    ...(typeof facts === 'object' && facts !== null ? { facts: { ...facts } } : {}),
  });
}

function connectionError(error: NodeJS.ErrnoException, options: AskOptions): WritError {
  const { code = '', message } = error;
  // Where its directory is a file no agent ever was: who acts in its place says what is wrong with it.
  if (['ENOENT', 'ECONNREFUSED', 'ENOTDIR'].includes(code))
    return unreachable('not-running', 'it is not running', options, error);
  if (['EACCES', 'EPERM'].includes(code))
    return unreachable('denied', 'its socket is not open to this user', options, error);
  return unreachable('failed', message, options, error);
}

function unreachable(reason: UnreachableReason, text: string, options: AskOptions, cause?: Error): WritError {
  return new WritError('AGENT_UNREACHABLE', `the agent does not answer on ${options.socketPath}: ${text}`, {
    facts: { socket: options.socketPath, reason },
    hint: hintOf(reason, options),
    cause,
  });
}

function hintOf(reason: UnreachableReason, { commandLine, service }: AskOptions): string {
  if (reason === 'denied') return `sudo ${commandLine}`;
  const { start, inspect: look } = service ?? chooseServiceCommands('installed');
  return reason === 'not-running' ? start : look;
}
