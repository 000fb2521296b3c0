// A control socket of an agent that sends the response lines of a test, and records its requests.
import { createServer, type Socket } from 'node:net';
import {
  createLineReader,
  helloLine,
  type SocketMessage,
} from '../../../src/core/protocol/socket-protocol.js';

export interface FakeAgent {
  readonly requests: readonly SocketMessage[];
  [Symbol.asyncDispose](): Promise<void>;
}

export interface FakeAgentOptions {
  readonly path: string;
  /** Lines for a request: objects become JSON, texts go out as they are. */
  readonly answer: (request: SocketMessage) => readonly (object | string)[];
  readonly version?: string;
  /** `hang` leaves the connection open after the answer; `end` by default. */
  readonly afterwards?: 'end' | 'hang';
}

/** @example await using agent = await fakeAgent({ path, answer: () => [{ type: 'end' }] }); */
export async function fakeAgent(options: FakeAgentOptions): Promise<FakeAgent> {
  const requests: SocketMessage[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const reader = createLineReader();
    socket.on('data', (chunk: Buffer) => {
      for (const message of reader.push(chunk)) {
        if (message['writ'] === 1) continue;
        requests.push(message);
        const lines = options.answer(message);
        const text = lines
          .map((line) => (typeof line === 'string' ? line : `${JSON.stringify(line)}\n`))
          .join('');
        socket.write(helloLine(options.version ?? '0.1.0') + text);
        if (options.afterwards !== 'hang') socket.end();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(options.path, resolve));
  return {
    requests,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
