// A proxy to a server that counts requests and connections. Changes no byte.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CountingProxy extends AsyncDisposable {
  /** The URL to use instead of the server's, without a trailing slash. */
  readonly url: string;
  readonly connections: () => number;
  /** The paths of all requests, in order. */
  readonly requests: () => readonly string[];
}

/** @param url of the server, over plain HTTP */
export async function countingProxy(url: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  const asked: string[] = [];
  let connections = 0;
  const server = createServer((client) => {
    connections += 1;
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    }
    client.on('data', (chunk: Buffer) => {
      for (const [, path = ''] of chunk.toString('latin1').matchAll(/^GET (\S+) HTTP/gm)) asked.push(path);
    });
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    requests: () => [...asked],
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
