// The agent's side of a socket that takes requests: reads one a connection, streams what it answers. Owns connections and
// their bounds; who may connect, the meaning of a request, and in whose turn it is done, are its opener's and its handler's.
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

/** Who asked: one connection. */
export interface Caller extends Watcher {
  readonly onEvent: (event: ControlAnswer) => void;
}

interface AnyRequest {
  readonly type: string;
}

/** What the agent does for each request, and answers in the end; what a handler throws is sent as an error. */
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
  /** Group of the socket; left out: the process's own. */
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

/** The same without the type of its requests. */
interface Served extends Pick<RequestSocketOptions<never>, 'version' | 'clock'> {
  readonly refused: RefusedRequests;
  readonly answer: (message: SocketMessage, caller: Caller) => Promise<ControlAnswer>;
}

export interface ControlSocket {
  /** Stops listening and ends the connections that are open. */
  close(): Promise<void>;
}

/** A client that does not read its answers is cut off before they fill the memory. */
const maxBufferedBytes = 4_000_000;
/** From the connection to the end of its request: a byte now and then must not keep a place. */
const requestTimeoutMs = 10_000;
/** For who is sent more than the system keeps for it, and reads nothing. */
const stalledMs = 60_000;
/** For the last answer to be read when the agent ends. */
const goodbyeMs = 1000;
/** For an answer to be read: a busy reader has that long, and then its place is somebody else's. */
const lingerMs = 5000;

/** @throws WritError SOCKET_PATH_TOO_LONG, SOCKET_IN_USE, LISTEN_FAILED */
export async function openRequestSocket<Request extends AnyRequest>(
  options: RequestSocketOptions<Request>,
): Promise<ControlSocket> {
  const { path, mode, gid, durable, maxConnections, version, log, clock, parse, handlers } = options;
  const places = createConnectionSlots(maxConnections);
  const closing = new AbortController();
  const refused = createRefusedRequests({ log, clock, closed: closing.signal });
  const answer: Served['answer'] = (message, caller) => {
    const request = parse(message);
    type Handler = (request: Request, caller: Caller) => Promise<ControlAnswer>;
    return (handlers[request.type as Request['type']] as Handler)(request, caller);
  };
  const listener: UnixListener = await listenUnix({
    ...{ path, mode, durable },
    ...(gid === undefined ? {} : { gid }),
    onConnection: (socket) => {
      const place = places.take(socket);
      if (place === undefined) socket.destroy();
      else serve(socket, place, { version, clock, refused, answer });
    },
  });
  return {
    close: async () => {
      // The listener is closed when its last connection is: who does not hang up by itself is cut off.
      const closed = listener.close();
      closing.abort();
      for (const socket of places.sockets()) {
        closeAfter(socket, goodbyeMs, systemClock);
        socket.end();
      }
      await closed;
    },
  };
}

function serve(socket: Socket, place: ConnectionSlot, options: Served): void {
  const reader = createLineReader();
  let greeted = false;
  let asked = false;
  const inTime = closeAfter(socket, requestTimeoutMs, options.clock);
  socket.write(helloLine(options.version));
  socket.on('data', (chunk) => {
    try {
      for (const message of reader.push(chunk)) {
        if (!greeted) {
          parseHello(message);
          greeted = true;
        } else if (!asked) {
          asked = true;
          inTime.stop();
          place.claim();
          answer(socket, message, { ...options, place });
        } else throw new WritError('MESSAGE_MALFORMED', 'only one request per connection');
      }
    } catch (error) {
      refuse(socket, error, { ...options, place });
    }
  });
}

interface Serving extends Served {
  readonly place: ConnectionSlot;
}

function answer(socket: Socket, message: SocketMessage, serving: Serving): void {
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
    () => goodbye(socket, '', serving),
    (error: unknown) => refuse(socket, error, serving),
  );
}

function refuse(socket: Socket, error: unknown, serving: Serving): void {
  serving.refused.note(error);
  if (socket.writableEnded) socket.destroy();
  else goodbye(socket, encodeLine(controlError(toWritError(error))), serving);
}

/** Who was answered and does not hang up would keep the place of somebody else. */
function goodbye(socket: Socket, line: string, { place, clock }: Serving): void {
  if (socket.destroyed) return;
  closeAfter(socket, lingerMs, clock);
  // Not before the system has it all: then it can be read even after the place is somebody else's.
  socket.end(line, () => place.release());
}

/** Resolves when what was written has been read, or nobody is there to read it. */
async function drained(socket: Socket, clock: Served['clock']): Promise<void> {
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
