// One connection of a worker to its agent: receives the greeting, sends hello, receives generations, sends verdicts. Opens and closes
// one socket; policy-reader connects again.
import { createConnection, type Socket } from 'node:net';
import { toWritError, WritError } from '../core/errors.js';
import {
  type AgentMessage,
  boundReason,
  type GenerationMessage,
  parseAgentMessage,
} from '../core/protocol/native-protocol.js';
import { createLineReader, encodeLine, helloLine, parseHello } from '../core/protocol/socket-protocol.js';
import { writVersion } from '../core/version.js';
import type { Offer, Verdict } from './generation-queue.js';

export interface SessionOptions {
  readonly socket: string;
  readonly name: string;
  /** Called when the greeting of an agent of this version has arrived. */
  readonly onConnected: (agentVersion: string) => void;
  readonly onGeneration: (offer: Offer) => void;
  readonly signal: AbortSignal;
}

/**
 * Runs until the connection ends; never rejects.
 * @returns the reason of the end: AGENT_UNREACHABLE, or MESSAGE_MALFORMED if the other end is not an agent
 */
export function runSession(options: SessionOptions): Promise<WritError> {
  const { signal } = options;
  const socket = createConnection({ path: options.socket });
  let reason = new WritError('AGENT_UNREACHABLE', 'the agent closed the connection');
  socket.on('error', (cause) => {
    reason = new WritError('AGENT_UNREACHABLE', cause.message, { facts: { path: options.socket }, cause });
  });
  readGenerations(socket, options, (error) => {
    reason = toWritError(error);
    socket.destroy();
  });
  socket.write(helloLine(writVersion));
  socket.write(encodeLine({ type: 'hello', name: options.name, pid: process.pid, ping: true }));
  const stop = (): void => void socket.destroy();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  return new Promise((resolve) => {
    socket.on('close', () => {
      signal.removeEventListener('abort', stop);
      resolve(reason);
    });
  });
}

function readGenerations(socket: Socket, options: SessionOptions, fail: (error: unknown) => void): void {
  const reader = createLineReader();
  let greeted = false;
  socket.on('data', (chunk: Buffer) => {
    try {
      for (const line of reader.push(chunk)) {
        const message = greeted ? parseAgentMessage(line) : undefined;
        if (!greeted) options.onConnected(parseHello(line).version);
        greeted = true;
        if (message === undefined) continue;
        take(socket, message, options);
      }
    } catch (error) {
      fail(error);
    }
  });
}

function take(socket: Socket, message: AgentMessage, { onGeneration }: SessionOptions): void {
  if (message.type === 'ping') {
    socket.write(encodeLine({ type: 'pong', id: message.id }));
    return;
  }
  const reply = (verdict: Verdict): void => answer(socket, message, verdict);
  onGeneration({ sender: socket, message, reply });
}

function answer(socket: Socket, { id, generation }: GenerationMessage, verdict: Verdict): void {
  // This connection has ended; the agent sends the generation again in the next one.
  if (socket.destroyed) return;
  const ack = { type: verdict.type, id, generation };
  socket.write(encodeLine(verdict.type === 'ack' ? ack : { ...ack, reason: boundReason(verdict.reason) }));
}
