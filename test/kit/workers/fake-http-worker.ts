// A fake daemon that is notified over HTTP, on a unix socket or a local port. It sends the answers of a test and records the
// requests with their bodies. Real servers are in test/real.
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
  /** `hang` never answers; `cut` closes in the middle of its answer. */
  | 'hang'
  | 'cut';

export interface FakeHttpWorker {
  readonly requests: readonly FakeHttpRequest[];
  /** Without a slash at its end; '' for a unix socket. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * @param answer called for each request
 * @param place `path` of a unix socket, or a `port` of 127.0.0.1; a free port by default
 * @throws Error if it cannot listen
 */
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
      const reply = answer(asked);
      if (reply === 'hang') return;
      if (reply === 'cut') {
        response.writeHead(200, { 'content-length': 100 });
        response.write('half');
        setImmediate(() => response.destroy());
        return;
      }
      response.writeHead(reply.status ?? 200, reply.headers ?? {});
      response.end(reply.body ?? '');
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
