// A daemon that is told over HTTP, on a unix socket or a local port. Answers what a test says and keeps what it was
// asked, bodies among it; real servers are in test/real.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort } from '../programs/free-port.js';

export interface FakeHttpRequest {
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type FakeHttpAnswer =
  | { readonly status?: number; readonly body?: string; readonly headers?: Record<string, string> }
  /** Never answers; or closes in the middle of its answer. */
  | 'hang'
  | 'cut';

export interface FakeHttpWorker {
  readonly requests: readonly FakeHttpRequest[];
  /** Without a slash at its end; of a port. */
  readonly url: string;
  close(): Promise<void>;
}

/** @param path of a unix socket; a free port of 127.0.0.1 when it is left out, or `port` */
export async function startFakeHttpWorker(
  answer: (request: FakeHttpRequest) => FakeHttpAnswer,
  place: { readonly path?: string; readonly port?: number } = {},
): Promise<FakeHttpWorker> {
  const requests: FakeHttpRequest[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      const asked = { line: `${request.method} ${request.url}`, headers: request.headers, body };
      requests.push(asked);
      const said = answer(asked);
      if (said === 'hang') return;
      if (said === 'cut') {
        response.writeHead(200, { 'content-length': 100 });
        response.write('half');
        setImmediate(() => response.destroy());
        return;
      }
      response.writeHead(said.status ?? 200, said.headers ?? {});
      response.end(said.body ?? '');
    });
  });
  const port = place.path === undefined ? (place.port ?? (await freePort())) : undefined;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if (port === undefined) server.listen(place.path, resolve);
    else server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address() as AddressInfo | string;
  return {
    requests,
    url: typeof address === 'string' ? '' : `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
