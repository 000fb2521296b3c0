// A way to a server that counts what is asked through it, and over how many connections. Changes no byte.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CountedWay extends AsyncDisposable {
  /** In place of the server's, without a slash at its end. */
  readonly url: string;
  readonly connections: () => number;
  /** By path, in the order in which they were asked for. */
  readonly requests: () => readonly string[];
}

/** @param url of the server, over plain HTTP */
export async function countedWay(url: string): Promise<CountedWay> {
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
