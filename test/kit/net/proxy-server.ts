// A small HTTP proxy on a free local port: tunnels for https, complete URLs for http. It connects each host name to a port of
// the test, so that names need not exist. It records request lines and credentials.
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface ProxyServer {
  readonly port: number;
  /** `http://127.0.0.1:PORT`, or https. */
  readonly url: string;
  /** As `CONNECT policy.test:443` and `GET http://policy.test/a`. */
  readonly lines: string[];
  /** Credentials of each request; undefined without. */
  readonly credentials: (string | undefined)[];
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ProxyAnswers {
  /** Local ports of the servers by host name. */
  readonly ports: Readonly<Record<string, number>>;
  /** @returns a status to reject with; undefined to serve the request */
  readonly refuse?: (credentials: string | undefined) => number | undefined;
  /** `always`: accepts requests and answers none. `in tunnels`: answers CONNECT, and forwards nothing. */
  readonly silent?: 'always' | 'in tunnels';
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** @returns the listening proxy, with the request lines and credentials so far */
export async function startProxy({ ports, refuse, silent, tls }: ProxyAnswers): Promise<ProxyServer> {
  const lines: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<Duplex>();
  const judge = ({ method, url, headers }: IncomingMessage): number | undefined => {
    lines.push(`${method} ${url}`);
    credentials.push(headers['proxy-authorization']);
    return refuse?.(headers['proxy-authorization']);
  };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const status = judge(request);
    if (silent === 'always') return;
    if (status !== undefined) return void response.writeHead(status).end();
    if (!URL.canParse(request.url ?? '')) return void response.writeHead(400).end();
    const { hostname, pathname } = new URL(request.url ?? '');
    const port = ports[hostname];
    if (port === undefined) return void response.writeHead(503).end();
    const { method, headers } = request;
    const onward = httpRequest({ port, host: '127.0.0.1', path: pathname, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  };
  const server = tls === undefined ? createServer(serve) : createSecureServer(tls, serve);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  server.on('connect', (request: IncomingMessage, client: Duplex) => {
    client.on('error', () => undefined);
    const status = judge(request);
    if (silent === 'always') return;
    if (silent === 'in tunnels') return void client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    const port = ports[(request.url ?? '').replace(/:\d+$/, '')];
    if (status !== undefined || port === undefined)
      return void client.end(`HTTP/1.1 ${status ?? 503} refused\r\nContent-Length: 0\r\n\r\n`);
    const onward = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(onward).pipe(client);
    });
    sockets.add(onward);
    onward.on('error', () => client.destroy());
    client.on('close', () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    lines,
    credentials,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
