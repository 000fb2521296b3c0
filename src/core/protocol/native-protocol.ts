// What the agent and a native worker say to each other (docs/native-protocol.md), on the lines of
// socket-protocol. Owns shapes, parsers and bounds; opens no socket, keeps no state.
//
//   agent -> worker   generation          worker -> agent   hello (once), then ack or nack for each generation
//                     ping                                  pong, from a worker whose hello announces it
import { WritError } from '../errors.js';
import type { SocketMessage } from './socket-protocol.js';

/** "Use this generation." */
export interface GenerationMessage {
  readonly type: 'generation';
  /** Names this message within its connection; the answer repeats it. Only grows. */
  readonly id: number;
  readonly generation: number;
  /** Real path of the generation directory; each bundle is an entry of it. */
  readonly path: string;
}

/** "Answer this, so that I know that you are not stopped." */
export interface PingMessage {
  readonly type: 'ping';
  /** Counts the pings of a connection; the answer repeats it. */
  readonly id: number;
}

export interface PongMessage extends Omit<PingMessage, 'type'> {
  readonly type: 'pong';
}

export interface HelloMessage {
  readonly type: 'hello';
  readonly name: string;
  readonly pid: number;
  /** It answers pings. */
  readonly ping?: true;
}

export interface AckMessage {
  readonly type: 'ack';
  readonly id: number;
  readonly generation: number;
}

export interface NackMessage extends Omit<AckMessage, 'type'> {
  readonly type: 'nack';
  /** For people; what is over 1 kB is cut off. */
  readonly reason: string;
}

export type AgentMessage = GenerationMessage | PingMessage;
export type WorkerMessage = HelloMessage | AckMessage | NackMessage | PongMessage;

export const maxReasonBytes = 1024;
const workerName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function isWorkerName(value: unknown): value is string {
  return typeof value === 'string' && workerName.test(value);
}

/**
 * Reads what a worker says. Unknown members are ignored; an unknown type is refused, as workers may say these
 * four things and nothing else.
 * @throws WritError MESSAGE_MALFORMED naming the member that is wrong
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
 * Reads what the agent says.
 * @returns undefined for a type this version does not know: a newer agent may say more
 * @throws WritError MESSAGE_MALFORMED naming the member that is wrong
 */
export function parseAgentMessage(message: SocketMessage): AgentMessage | undefined {
  const { type, path } = message;
  if (typeof type !== 'string') throw malformed('type');
  if (type === 'ping') return { type, id: positive(message, 'id') };
  if (type !== 'generation') return undefined;
  if (typeof path !== 'string' || !path.startsWith('/')) throw malformed('path');
  return { type, ...about(message), path };
}

/** @returns the reason cut to 1 kB: a no that is too long is still a refusal */
export function boundReason(reason: string): string {
  if (Buffer.byteLength(reason) <= maxReasonBytes) return reason;
  // A character that the cut goes through becomes a replacement character of 3 bytes.
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
