// A server of plain bytes, for answers that no honest HTTP server can give.
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface RawServer {
  /** With a slash at its end. */
  readonly url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * @param answer called once a connection, when the first bytes have come
 * @param host of the loopback device
 */
export async function rawServer(
  answer: (socket: Socket, request: Buffer) => void,
  host = '127.0.0.1',
): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', (request) => answer(socket, request));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}/`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Writes the same bytes again and again, until the other side has had enough. */
export function endlessly(socket: Socket, bytes: string, everyMs: number): void {
  const timer = setInterval(() => socket.write(bytes), everyMs);
  socket.on('close', () => clearInterval(timer));
}
