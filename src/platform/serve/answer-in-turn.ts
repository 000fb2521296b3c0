// The requests of one connection, answered one at a time. Node calls its listener for each request that it has parsed, and one
// read of a client that does not wait (pipelining) holds hundreds: what is begun for an answer that has no socket yet would
// hear nothing of the end of its connection, and stay open for ever. Here nothing is begun before its turn.
// Owns the order alone; what an answer is, is the handler's.
import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface Turns {
  readonly listener: RequestListener;
  /** True while bytes of ours that are no part of its answer would be read as some. */
  isAnswering(socket: Socket): boolean;
}

interface Line {
  readonly last: ServerResponse;
  readonly waiting: number;
}

export interface TurnsOptions {
  /** Behind the one that is answered: a connection that asks for more is ended. */
  readonly maxWaiting: number;
  /** Told of such a connection. */
  readonly onExcess: (socket: Socket) => void;
  /** An answer is begun. */
  readonly onBegun: (socket: Socket) => void;
  /** It is out, or its connection gone. */
  readonly onEnded: (socket: Socket) => void;
}

export function answerInTurn(handler: RequestListener, options: TurnsOptions): Turns {
  const { maxWaiting, onExcess, onBegun, onEnded } = options;
  const lines = new WeakMap<Socket, Line>();
  const begin: RequestListener = (request, response) => {
    const { socket } = request;
    onBegun(socket);
    response.on('close', () => {
      // Thousands wait for their next request: none of them keeps its last one in memory.
      if (lines.get(socket)?.last === response) lines.delete(socket);
      onEnded(socket);
    });
    handler(request, response);
  };
  return {
    isAnswering: (socket) => lines.get(socket)?.last.writableFinished === false,
    listener: (request, response) => {
      const { socket } = request;
      // What was parsed together with the request that ended the connection.
      if (socket.destroyed) return;
      if (response.socket !== null) {
        lines.set(socket, { last: response, waiting: 0 });
        return begin(request, response);
      }
      const line = lines.get(socket);
      // Behind an answer that Node gave by itself, as to a request without a Host: it ends the connection.
      if (line === undefined) return;
      if (line.waiting === maxWaiting) {
        onExcess(socket);
        socket.destroy();
        return;
      }
      lines.set(socket, { last: response, waiting: line.waiting + 1 });
      // Behind the end of an answer the next one has the socket; behind the end of the connection none has.
      line.last.once('close', () => {
        if (response.socket === null || socket.destroyed) return;
        const { last, waiting } = lines.get(socket) ?? { last: response, waiting: 1 };
        lines.set(socket, { last, waiting: waiting - 1 });
        begin(request, response);
      });
    },
  };
}
