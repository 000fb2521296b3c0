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
import { closeWhenIdle, listenUnix, type UnixListener } from '../../platform/net/unix-socket.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Watcher } from '../report/status-feed.js';

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
  readonly durable: DurableFs;
  /** @throws WritError MESSAGE_MALFORMED */
  readonly parse: (message: SocketMessage) => Request;
  readonly handlers: HandlersOf<Request>;
}

/** The same without the type of its requests. */
interface Served extends Pick<RequestSocketOptions<never>, 'version' | 'log'> {
  readonly answer: (message: SocketMessage, caller: Caller) => Promise<ControlAnswer>;
}

export interface ControlSocket {
  /** Stops listening and ends the connections that are open. */
  close(): Promise<void>;
}

/** A client that does not read its answers is cut off before they fill the memory. */
const maxBufferedBytes = 4_000_000;
const requestTimeoutMs = 10_000;
/** For the last answer to be read when the agent ends. */
const goodbyeMs = 1000;
/** For an answer to be read: a busy reader has that long, and then its place is somebody else's. */
const lingerMs = 5000;

/** @throws WritError SOCKET_PATH_TOO_LONG, SOCKET_IN_USE, LISTEN_FAILED */
export async function openRequestSocket<Request extends AnyRequest>(
  options: RequestSocketOptions<Request>,
): Promise<ControlSocket> {
  const sockets = new Set<Socket>();
  const { path, mode, gid, durable, maxConnections, version, log, parse, handlers } = options;
  const answer: Served['answer'] = (message, caller) => {
    const request = parse(message);
    type Handler = (request: Request, caller: Caller) => Promise<ControlAnswer>;
    return (handlers[request.type as Request['type']] as Handler)(request, caller);
  };
  const listener: UnixListener = await listenUnix({
    ...{ path, mode, durable },
    ...(gid === undefined ? {} : { gid }),
    onConnection: (socket) => {
      if (sockets.size >= maxConnections) {
        socket.destroy();
        return;
      }
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      serve(socket, { version, log, answer });
    },
  });
  return {
    close: async () => {
      // The listener is closed when its last connection is: who does not hang up by itself is cut off.
      const closing = listener.close();
      for (const socket of sockets) {
        closeWhenIdle(socket, goodbyeMs);
        socket.end();
      }
      await closing;
    },
  };
}

function serve(socket: Socket, options: Served): void {
  const reader = createLineReader();
  let greeted = false;
  let asked = false;
  closeWhenIdle(socket, requestTimeoutMs);
  socket.write(helloLine(options.version));
  socket.on('data', (chunk) => {
    try {
      for (const message of reader.push(chunk)) {
        if (!greeted) {
          parseHello(message);
          greeted = true;
        } else if (!asked) {
          asked = true;
          closeWhenIdle(socket, 0);
          answer(socket, message, options);
        } else throw new WritError('MESSAGE_MALFORMED', 'one request a connection');
      }
    } catch (error) {
      options.log.warn({ err: error }, 'a connection to the control socket was refused');
      refuse(socket, error);
    }
  });
}

function answer(socket: Socket, message: SocketMessage, options: Served): void {
  const send: Watcher['send'] = async (one) => {
    if (socket.writableLength > maxBufferedBytes) socket.destroy();
    if (socket.destroyed || socket.write(encodeLine(boundAnswer(one)))) return;
    await drained(socket);
  };
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  const work = async (): Promise<void> => {
    const onEvent = (event: ControlAnswer): void => void send(event);
    return send(await options.answer(message, { send, onEvent, gone: gone.signal }));
  };
  work().then(
    () => goodbye(socket),
    (error: unknown) => {
      options.log.warn({ err: error }, 'a request on the control socket failed');
      refuse(socket, error);
    },
  );
}

function refuse(socket: Socket, error: unknown): void {
  if (socket.writableEnded) socket.destroy();
  else goodbye(socket, encodeLine(controlError(toWritError(error))));
}

/** Who was answered and does not hang up would keep the place of somebody else. */
function goodbye(socket: Socket, line = ''): void {
  if (socket.destroyed) return;
  closeWhenIdle(socket, lingerMs);
  socket.end(line);
}

/** Resolves when what was written has been read, or nobody is there to read it. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
}
