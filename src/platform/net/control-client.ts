// The client of the control socket of the agent: connects, exchanges the hello, sends one request and yields the responses as
// they arrive. Every missing response is AGENT_UNREACHABLE with a hint. The responses are not interpreted here.

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
import { requireSafePath, trustedOwners } from '../disk/safe-path.js';
import { type Clock, yieldToEventLoop } from '../time/clock.js';
import { joinSignals } from '../time/join-signals.js';
import { requireSocketPath } from './unix-socket.js';

export interface AgentRequestOptions {
  readonly socketPath: string;
  /** State directory of the agent. The owner of this directory may also own the socket. */
  readonly state: string;
  readonly request: ControlRequest;
  /** Version of this program. */
  readonly version: string;
  readonly clock: Clock;
  /** Timeout between two lines of the agent. */
  readonly silenceMs: number;
  /** The command as the user typed it, such as `writ pull`; a hint repeats it after sudo. */
  readonly commandLine: string;
  /** The commands that start the agent of this host; left out: those of its systemd unit. */
  readonly service?: ServiceCommands;
  /** Called once if the agent has another version. */
  readonly onOtherVersion: (agentVersion: string) => void;
  /** Ends the wait; the agent still completes the request. */
  readonly signal: AbortSignal;
}

/** Why there is no response (`facts.reason` of AGENT_UNREACHABLE). Only `not-running` proves that no agent runs. */
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
 * Sends one request to the agent and yields its messages; the last one ends the response.
 * @throws WritError AGENT_UNREACHABLE, PATH_UNSAFE, MESSAGE_MALFORMED, INTERRUPTED, and the code of an error that the agent
 *   sends
 */
export async function* askAgent(options: AgentRequestOptions): AsyncGenerator<ControlAnswer> {
  requireSocketPath(options.socketPath);
  requireTrustedSocket(options);
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
      // A `watch` request gets many status messages before its end.
      if (options.request.type === 'watch' ? type === 'end' : finalTypes.includes(String(type))) return;
    }
    throw unreachable('closed', 'it closed the connection before its answer was complete', options);
  } finally {
    socket.destroy();
  }
}

/**
 * Rejects a socket that another user could have created, because root would trust its responses. Node cannot read the user of
 * a peer (SO_PEERCRED). If only root, this user or the user of the agent can change the path, one of them bound the socket.
 */
function requireTrustedSocket({ socketPath, state }: AgentRequestOptions): void {
  try {
    requireSafePath(socketPath, trustedOwners(state));
  } catch (error) {
    // The path is missing or invisible to this user; the connection attempt distinguishes both.
    if (!isSystemError(error) || error instanceof WritError) throw error;
  }
}

const connectAgainMs = 50;
const maxConnectMs = 5000;

/**
 * Connects, and retries for a limited time after EAGAIN, which the system returns if many clients connect at once. The limit
 * is a time and not a number of retries, because a pause takes longer than 50 ms on a busy machine.
 */
async function connected(options: AgentRequestOptions): Promise<Socket> {
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

async function* messagesOf(socket: Socket, options: AgentRequestOptions): AsyncGenerator<SocketMessage> {
  const reader = createLineReader();
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  for (;;) {
    const chunk = await nextChunk(chunks, options);
    if (chunk.done === true) return;
    yield* reader.push(chunk.value);
  }
}

async function nextChunk(chunks: AsyncIterator<Uint8Array, unknown>, options: AgentRequestOptions) {
  try {
    return await answeredInTime(chunks.next(), options.silenceMs, options, 'it sent nothing');
  } catch (error) {
    throw isSystemError(error) ? connectionError(error, options) : error;
  }
}

/** @returns the result of the promise within the timeout. @throws WritError AGENT_UNREACHABLE (`silent`), INTERRUPTED */
async function answeredInTime<T>(
  answer: Promise<T>,
  timeoutMs: number,
  options: AgentRequestOptions,
  what: string,
): Promise<T> {
  const { clock, signal } = options;
  const settled = new AbortController();
  using waiting = joinSignals(settled.signal, signal);
  const silence = clock.sleep(timeoutMs, waiting.signal).then(async (): Promise<never> => {
    if (signal.aborted) throw interrupted();
    // After this process was stopped or starved, the timer fires before the data in the socket is read. Wait for the rest of
    // this turn of the event loop and a whole one, so that all received data has been read.
    await yieldToEventLoop();
    await yieldToEventLoop();
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

function greet(message: SocketMessage, options: AgentRequestOptions): void {
  // An agent that is stopping may send an error in place of the hello.
  if (message['type'] === 'error') throw errorOf(message);
  const { version } = parseHello(message);
  if (version !== options.version) options.onOtherVersion(version);
}

function errorOf(message: SocketMessage): WritError {
  const { code, message: text, hint, facts } = message;
  const known = typeof code === 'string' && Object.hasOwn(errorCodes, code);
  // A code of a later version is unknown here and becomes INTERNAL.
  const description = known ? String(text) : `${String(code)}: ${String(text)}`;
  return new WritError(known ? (code as ErrorCode) : 'INTERNAL', description, {
    ...(typeof hint === 'string' ? { hint } : {}),
    ...(typeof facts === 'object' && facts !== null ? { facts: { ...facts } } : {}),
  });
}

function connectionError(error: NodeJS.ErrnoException, options: AgentRequestOptions): WritError {
  const { code = '', message } = error;
  // ENOTDIR: the directory of the socket is a file, so no agent runs. The standalone run then reports the wrong file.
  if (['ENOENT', 'ECONNREFUSED', 'ENOTDIR'].includes(code))
    return unreachable('not-running', 'it is not running', options, error);
  if (['EACCES', 'EPERM'].includes(code))
    return unreachable('denied', 'its socket is not open to this user', options, error);
  return unreachable('failed', message, options, error);
}

function unreachable(
  reason: UnreachableReason,
  text: string,
  options: AgentRequestOptions,
  cause?: Error,
): WritError {
  return new WritError('AGENT_UNREACHABLE', `the agent does not answer on ${options.socketPath}: ${text}`, {
    facts: { socket: options.socketPath, reason },
    hint: hintOf(reason, options),
    cause,
  });
}

function hintOf(reason: UnreachableReason, { commandLine, service }: AgentRequestOptions): string {
  if (reason === 'denied') return `sudo ${commandLine}`;
  const { start, inspect } = service ?? chooseServiceCommands('installed');
  return reason === 'not-running' ? start : inspect;
}
