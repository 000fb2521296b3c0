// Stand-ins for daemons with a control socket of text lines, each with the habits of one that was looked at: BIRD
// greets, and drops its answer when the client shuts its side; unbound closes after its answer; HAProxy's socket
// goes away for a moment in a reload. Owns one listening socket; the real ones: test/exhaustive/daemons.
import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';

export type LineHabit =
  /** Greets at once, answers lines, keeps the connection, and drops an answer to a client that shut its side. */
  | 'bird'
  /** Answers one line and closes. */
  | 'unbound'
  /** Closes without a word, and listens again only after a moment. */
  | 'haproxy'
  /** Answers only when its client has shut its side. */
  | 'half-closed'
  | 'hang'
  | 'endless'
  /** Takes the request and closes without a byte, as one does that ends just then. */
  | 'mute'
  /** Closes each connection without reading from it; with an answer it says that first, as it is. */
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
  /** Without its line end. */
  readonly answer?: (request: string) => string;
  /** Bytes per write: 1 splits everything. */
  readonly chunkBytes?: number;
  /** How long the socket of `haproxy` is away. */
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
      // Once the request waits in the kernel: what is closed unread there is reset.
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
      // What is away would listen again behind the end.
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
      // The real one loses the answer of a client that shut its side; it looks after some work.
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
