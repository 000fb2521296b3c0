// Answers the requests of one connection one at a time. Node calls its listener for each parsed request, and one read of a
// pipelining client can contain hundreds. A handler that starts before its response has a socket would not get the close event
// of the connection, and would never end. So each handler starts when the previous response is complete. Owns only the order.
import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface OrderedAnswers {
  readonly listener: RequestListener;
  /** @returns whether a response is incomplete, so that the client would read other bytes as part of it */
  isAnswering(socket: Socket): boolean;
}

interface AnswerQueue {
  readonly last: ServerResponse;
  readonly waiting: number;
}

export interface OrderedAnswersOptions {
  /** Queued requests behind the current one. A connection with more is closed. */
  readonly maxWaiting: number;
  /** Called before such a connection is closed. */
  readonly onExcess: (socket: Socket) => void;
  /** Called when the handler of a request starts. */
  readonly onBegun: (socket: Socket) => void;
  /** Called when the response is complete or its connection is closed. */
  readonly onEnded: (socket: Socket) => void;
}

/**
 * @returns a listener that calls `handler` for one request of a connection at a time, in the order of the requests
 */
export function answerInOrder(handler: RequestListener, options: OrderedAnswersOptions): OrderedAnswers {
  const { maxWaiting, onExcess, onBegun, onEnded } = options;
  const lines = new WeakMap<Socket, AnswerQueue>();
  const begin: RequestListener = (request, response) => {
    const { socket } = request;
    onBegun(socket);
    response.on('close', () => {
      // Thousands of connections may be idle: delete the last response of each from memory.
      if (lines.get(socket)?.last === response) lines.delete(socket);
      onEnded(socket);
    });
    handler(request, response);
  };
  return {
    isAnswering: (socket) => lines.get(socket)?.last.writableFinished === false,
    listener: (request, response) => {
      const { socket } = request;
      // This request was parsed together with the one that closed the connection.
      if (socket.destroyed) return;
      if (response.socket !== null) {
        lines.set(socket, { last: response, waiting: 0 });
        return begin(request, response);
      }
      const line = lines.get(socket);
      // Node itself answered the previous request, as one without a Host header, and closes the connection.
      if (line === undefined) return;
      if (line.waiting === maxWaiting) {
        onExcess(socket);
        socket.destroy();
        return;
      }
      lines.set(socket, { last: response, waiting: line.waiting + 1 });
      // After a complete response the next response has the socket; after the end of the connection it has none.
      line.last.once('close', () => {
        if (response.socket === null || socket.destroyed) return;
        const { last, waiting } = lines.get(socket) ?? { last: response, waiting: 1 };
        lines.set(socket, { last, waiting: waiting - 1 });
        begin(request, response);
      });
    },
  };
}
