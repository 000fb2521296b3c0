// Fake daemons with a control socket of text lines, each with the observed behaviour of a real one. BIRD sends a greeting,
// and drops its answer when the client shuts its side. unbound closes after its answer. The socket of HAProxy is closed
// briefly during a reload. The real ones: test/exhaustive/daemons.
import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';

export type LineHabit =
  /** Sends a greeting, answers lines, keeps the connection, and drops an answer to a client that shut its side. */
  | 'bird'
  /** Answers one line and closes. */
  | 'unbound'
  /** Closes without an answer, and listens again after `awayMs`. */
  | 'haproxy'
  /** Answers only after its client shut its side. */
  | 'half-closed'
  | 'hang'
  | 'endless'
  /** Accepts the request and closes without a byte, as a daemon that exits at that time. */
  | 'mute'
  /** Closes each connection without reading from it, after it has sent the answer of the test if there is one. */
  | 'unread'
  /** Closes in the middle of the answer. */
  | 'cut';

export interface FakeLineServer {
  connections(): number;
  readonly received: readonly string[];
  close(): Promise<void>;
}

export interface FakeLineOptions {
  readonly habit: LineHabit;
  /** Text without its line end; `ok` by default. */
  readonly answer?: (request: string) => string;
  /** Bytes of each write; 1 splits everything. */
  readonly chunkBytes?: number;
  /** Time for which the socket of `haproxy` is closed. 80 by default. */
  readonly awayMs?: number;
}

/** Listens on the path until `close`. */
export async function startFakeLineServer(path: string, options: FakeLineOptions): Promise<FakeLineServer> {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let server: Server;
  let away: Promise<void> = Promise.resolve();
  const listen = async (): Promise<void> => {
    server = createServer({ allowHalfOpen: true, pauseOnConnect: options.habit === 'unread' }, serve);
    await new Promise<void>((resolve) => server.listen(path, resolve));
  };
  const serve = (socket: Socket): void => {
    connections += 1;
    if (options.habit === 'unread') {
      socket.pause();
      if (options.answer !== undefined) socket.write(options.answer(''));
      // Waits until the request is in the kernel: a close with unread bytes resets the connection.
      globalThis.setTimeout(() => socket.destroy(), 20);
      return;
    }
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    if (options.habit === 'bird') socket.write('0001 BIRD 2.0.12 ready.\n');
    let pending = '';
    socket.on('data', (chunk) => {
      pending += chunk.toString('utf8');
      if (!pending.endsWith('\n')) return;
      received.push(pending);
      void respond(socket, pending, options);
      if (options.habit === 'haproxy') away = goAway();
    });
    socket.on('end', () => {
      if (options.habit === 'half-closed') socket.end(`${options.answer?.(pending) ?? 'ok'}\n`);
      else socket.destroy();
    });
  };
  const goAway = async (): Promise<void> => {
    for (const socket of sockets) socket.end();
    await new Promise((resolve) => server.close(resolve));
    await setTimeout(options.awayMs ?? 80);
    await listen();
  };
  await listen();
  return {
    received,
    connections: () => connections,
    close: async () => {
      // A closed `haproxy` socket would listen again after the end of the test.
      await away;
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function respond(socket: Socket, request: string, options: FakeLineOptions): Promise<void> {
  const answer = Buffer.from(`${options.answer?.(request) ?? 'ok'}\n`);
  switch (options.habit) {
    case 'bird':
      // BIRD loses the answer to a client that shut its side, because it reads only after some work.
      await setTimeout(5);
      if (!socket.readableEnded) await writeSplit(socket, answer, options.chunkBytes ?? answer.length);
      return;
    case 'unbound':
      await writeSplit(socket, answer, options.chunkBytes ?? answer.length);
      socket.end();
      return;
    case 'mute':
      socket.end();
      return;
    case 'cut':
      socket.end(answer.subarray(0, -1));
      return;
    case 'endless':
      while (!socket.destroyed) {
        socket.write(answer);
        await setImmediate();
      }
      return;
    default:
      return;
  }
}

async function writeSplit(socket: Socket, bytes: Buffer, size: number): Promise<void> {
  socket.setNoDelay(true);
  for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
    socket.write(bytes.subarray(at, at + size));
    await setImmediate();
  }
}
