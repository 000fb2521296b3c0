// A web server on a free local port that sends the answers of a test and records requests.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HttpFixture {
  /** URL with a slash at its end. */
  readonly url: string;
  readonly requests: IncomingMessage[];
  /** Connections accepted so far. */
  connections(): number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @example await using server = await httpFixture((_request, response) => response.end('hello')); */
export async function httpFixture(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<HttpFixture> {
  const requests: IncomingMessage[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    requests,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
