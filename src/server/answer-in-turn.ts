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

/**
 * @param maxWaiting behind the one that is answered: a connection that asks for more is ended
 * @param onExcess told of such a connection
 */
export function answerInTurn(
  maxWaiting: number,
  handler: RequestListener,
  onExcess: (socket: Socket) => void,
): Turns {
  const lines = new WeakMap<Socket, Line>();
  return {
    isAnswering: (socket) => lines.get(socket)?.last.writableFinished === false,
    listener: (request, response) => {
      const { socket } = request;
      // What was parsed together with the request that ended the connection.
      if (socket.destroyed) return;
      if (response.socket !== null) {
        lines.set(socket, { last: response, waiting: 0 });
        return handler(request, response);
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
        handler(request, response);
      });
    },
  };
}
