// The server side of a request socket: reads one request for each connection and streams the responses. Bounds the number, the time
// and the memory of connections. agent-sockets.ts sets the permissions; the handlers execute the requests.
import type { Socket } from 'node:net';
import { toWritError, WritError } from '../../core/errors.js';
import {
  boundAnswer,
  type ControlAnswer,
  type ControlRequest,
  controlError,
} from '../../core/protocol/control-protocol.js';
import {
  createLineReader,
  encodeLine,
  helloLine,
  parseHello,
  type SocketMessage,
} from '../../core/protocol/socket-protocol.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { type ConnectionSlot, createConnectionSlots } from '../../platform/net/connection-slots.js';
import { closeAfter, listenUnix, type UnixListener } from '../../platform/net/unix-socket.js';
import type { Logger } from '../../platform/telemetry/log.js';
import { type Clock, systemClock } from '../../platform/time/clock.js';
import type { Watcher } from '../report/status-feed.js';
import { createRefusedRequests, type RefusedRequests } from './refused-requests.js';

/** The client of one connection. */
export interface Caller extends Watcher {
  readonly onEvent: (event: ControlAnswer) => void;
}

interface AnyRequest {
  readonly type: string;
}

/** A function for each type of request. It returns the last response; an error that it throws is sent to the client. */
export type HandlersOf<Request extends AnyRequest> = {
  readonly [Type in Request['type']]: (
    request: Extract<Request, { type: Type }>,
    caller: Caller,
  ) => Promise<ControlAnswer>;
};

export type RequestHandlers = HandlersOf<ControlRequest>;

export interface RequestSocketOptions<Request extends AnyRequest> {
  readonly path: string;
  readonly mode: number;
  /** Group of the socket; undefined: the group of the process. */
  readonly gid?: number;
  readonly maxConnections: number;
  readonly version: string;
  readonly log: Logger;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly durable: DurableFs;
  /** @throws WritError MESSAGE_MALFORMED */
  readonly parse: (message: SocketMessage) => Request;
  readonly handlers: HandlersOf<Request>;
}

/** The options of a connection, without the type of its requests. */
interface SocketContext extends Pick<RequestSocketOptions<never>, 'version' | 'clock'> {
  readonly refused: RefusedRequests;
  readonly answer: (message: SocketMessage, caller: Caller) => Promise<ControlAnswer>;
}

export interface ControlSocket {
  /** Stops listening and closes all connections. */
  close(): Promise<void>;
}

/** Closes a client that does not read its responses, before they use too much memory. */
const maxBufferedBytes = 4_000_000;
/** From the connect to the end of the request: a client that sends single bytes must not block a connection slot. */
const requestTimeoutMs = 10_000;
/** Closes a client that does not read while the buffer of the system is full. */
const stalledMs = 60_000;
/** The time for clients to read the last response when the agent ends. */
const closeGraceMs = 1000;
/** The time for a client to read the last response, before its connection slot is released. */
const lingerMs = 5000;

/**
 * Listens on a unix socket, with one request for each connection. A connection above `maxConnections` is closed at once.
 * @returns the open socket. `close` ends connections after at most 1 s and removes the socket file,
 * @throws WritError SOCKET_PATH_TOO_LONG; PATH_UNSAFE if others can change its directory; SOCKET_IN_USE if another process
 *   listens or the path is no socket; LISTEN_FAILED for any other error, such as a missing directory or group. An error of a
 *   handler or of `parse` goes to the client as the last response, and is never thrown here
 */
export async function openRequestSocket<Request extends AnyRequest>(
  options: RequestSocketOptions<Request>,
): Promise<ControlSocket> {
  const { path, mode, gid, durable, maxConnections, version, log, clock, parse, handlers } = options;
  const slots = createConnectionSlots(maxConnections);
  const closing = new AbortController();
  const refused = createRefusedRequests({ log, clock, closed: closing.signal });
  const answer: SocketContext['answer'] = (message, caller) => {
    const request = parse(message);
    type Handler = (request: Request, caller: Caller) => Promise<ControlAnswer>;
    return (handlers[request.type as Request['type']] as Handler)(request, caller);
  };
  const listener: UnixListener = await listenUnix({
    ...{ path, mode, durable },
    ...(gid === undefined ? {} : { gid }),
    onConnection: (socket) => {
      const slot = slots.take(socket);
      if (slot === undefined) socket.destroy();
      else serve(socket, slot, { version, clock, refused, answer });
    },
  });
  return {
    close: async () => {
      // The listener closes after its last connection: close clients that do not disconnect by themselves.
      const closed = listener.close();
      closing.abort();
      for (const socket of slots.sockets()) {
        closeAfter(socket, closeGraceMs, systemClock);
        socket.end();
      }
      await closed;
    },
  };
}

function serve(socket: Socket, slot: ConnectionSlot, options: SocketContext): void {
  const reader = createLineReader();
  let hasHello = false;
  let hasRequest = false;
  const requestTimer = closeAfter(socket, requestTimeoutMs, options.clock);
  socket.write(helloLine(options.version));
  socket.on('data', (chunk) => {
    try {
      for (const message of reader.push(chunk)) {
        if (!hasHello) {
          parseHello(message);
          hasHello = true;
        } else if (!hasRequest) {
          hasRequest = true;
          requestTimer.stop();
          slot.claim();
          answer(socket, message, { ...options, slot });
        } else throw new WritError('MESSAGE_MALFORMED', 'only one request per connection');
      }
    } catch (error) {
      refuse(socket, error, { ...options, slot });
    }
  });
}

interface ConnectionContext extends SocketContext {
  readonly slot: ConnectionSlot;
}

function answer(socket: Socket, message: SocketMessage, serving: ConnectionContext): void {
  const send: Watcher['send'] = async (one) => {
    if (socket.writableLength > maxBufferedBytes) socket.destroy();
    if (socket.destroyed || socket.write(encodeLine(boundAnswer(one)))) return;
    await drained(socket, serving.clock);
  };
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  const work = async (): Promise<void> => {
    const onEvent = (event: ControlAnswer): void => void send(event);
    return send(await serving.answer(message, { send, onEvent, gone: gone.signal }));
  };
  work().then(
    () => endConnection(socket, '', serving),
    (error: unknown) => refuse(socket, error, serving),
  );
}

function refuse(socket: Socket, error: unknown, serving: ConnectionContext): void {
  serving.refused.note(error);
  if (socket.writableEnded) socket.destroy();
  else endConnection(socket, encodeLine(controlError(toWritError(error))), serving);
}

/** Sends the last line, and closes a client that does not disconnect, so that its connection slot is free. */
function endConnection(socket: Socket, line: string, { slot, clock }: ConnectionContext): void {
  if (socket.destroyed) return;
  closeAfter(socket, lingerMs, clock);
  // Release the slot after the system has all of the response: the client can then read it in any case.
  socket.end(line, () => slot.release());
}

/** Resolves when the client has read the written data, or the connection is closed. */
async function drained(socket: Socket, clock: SocketContext['clock']): Promise<void> {
  const stalled = closeAfter(socket, stalledMs, clock);
  await new Promise<void>((resolve) => {
    const done = (): void => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
  stalled.stop();
}
