// A server of plain bytes, for answers that no correct HTTP server sends.
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface RawServer {
  /** URL with a slash at its end. */
  readonly url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * @param answer called once for each connection, after its first bytes
 * @param host address of the loopback device
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

/** Writes the same bytes repeatedly until the connection is closed. */
export function endlessly(socket: Socket, bytes: string, everyMs: number): void {
  const timer = setInterval(() => socket.write(bytes), everyMs);
  socket.on('close', () => clearInterval(timer));
}
