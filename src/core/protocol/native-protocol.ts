// The messages between the agent and a native worker (docs/native-protocol.md), as lines of socket-protocol.ts.
// Has the types, parsers and bounds; no state.
//
//   agent -> worker   generation          worker -> agent   hello (once), then ack or nack for each generation
//                     ping                                  pong, if the hello of the worker announces it
import { WritError } from '../errors.js';
import type { SocketMessage } from './socket-protocol.js';

/** Asks the worker to load this generation. */
export interface GenerationMessage {
  readonly type: 'generation';
  /** Identifies this message on its connection and increases with each message; the reply repeats it. */
  readonly id: number;
  readonly generation: number;
  /** Real path of the directory of the generation, which has one entry for each bundle. */
  readonly path: string;
}

/** Asks the worker for a reply that shows that it is not stopped. */
export interface PingMessage {
  readonly type: 'ping';
  /** Number of the ping on its connection; the reply repeats it. */
  readonly id: number;
}

export interface PongMessage extends Omit<PingMessage, 'type'> {
  readonly type: 'pong';
}

export interface HelloMessage {
  readonly type: 'hello';
  readonly name: string;
  readonly pid: number;
  /** The worker replies to pings. */
  readonly ping?: true;
}

export interface AckMessage {
  readonly type: 'ack';
  readonly id: number;
  readonly generation: number;
}

export interface NackMessage extends Omit<AckMessage, 'type'> {
  readonly type: 'nack';
  /** Text for operators, cut to 1 kB. */
  readonly reason: string;
}

export type AgentMessage = GenerationMessage | PingMessage;
export type WorkerMessage = HelloMessage | AckMessage | NackMessage | PongMessage;

export const maxReasonBytes = 1024;
const workerName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @returns whether a native worker may announce the value as its name: 1 to 64 letters, digits and `._-` */
export function isWorkerName(value: unknown): value is string {
  return typeof value === 'string' && workerName.test(value);
}

/**
 * Parses a message of a worker. Unknown members are ignored. An unknown type is an error, because the protocol has no other messages
 * of workers.
 * @throws WritError MESSAGE_MALFORMED with the wrong member
 */
export function parseWorkerMessage(message: SocketMessage): WorkerMessage {
  const { type, name, reason, ping } = message;
  switch (type) {
    case 'hello':
      if (!isWorkerName(name)) throw malformed('name');
      return { type, name, pid: positive(message, 'pid'), ...(ping === true ? { ping } : {}) };
    case 'pong':
      return { type, id: positive(message, 'id') };
    case 'ack':
      return { type, ...about(message) };
    case 'nack':
      if (typeof reason !== 'string') throw malformed('reason');
      return { type, ...about(message), reason: boundReason(reason) };
    default:
      throw malformed('type');
  }
}

/**
 * Parses a message of the agent.
 * @returns undefined for an unknown type, because a newer agent may send more types
 * @throws WritError MESSAGE_MALFORMED with the wrong member
 */
export function parseAgentMessage(message: SocketMessage): AgentMessage | undefined {
  const { type, path } = message;
  if (typeof type !== 'string') throw malformed('type');
  if (type === 'ping') return { type, id: positive(message, 'id') };
  if (type !== 'generation') return undefined;
  if (typeof path !== 'string' || !path.startsWith('/')) throw malformed('path');
  return { type, ...about(message), path };
}

/** @returns the reason, cut to 1 kB: a refusal with a longer text is still a refusal */
export function boundReason(reason: string): string {
  if (Buffer.byteLength(reason) <= maxReasonBytes) return reason;
  // A character that is cut in the middle becomes a replacement character of 3 bytes.
  return `${Buffer.from(reason).toString('utf8', 0, maxReasonBytes - 6)}...`;
}

function about(message: SocketMessage): { readonly id: number; readonly generation: number } {
  return { id: positive(message, 'id'), generation: positive(message, 'generation') };
}

function positive(message: SocketMessage, name: string): number {
  const value = message[name];
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  throw malformed(name);
}

function malformed(member: string): WritError {
  const text = `a native worker's socket: \`${member}\` is missing or wrong`;
  return new WritError('MESSAGE_MALFORMED', text, { facts: { member } });
}
