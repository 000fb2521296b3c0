// The web server of the repository, on loopback in this process: it serves the publisher's files, or fails as servers and
// networks do. Timeouts of the transport belong to the kernel and Node and take real time, so the host's timeouts are short.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Seeded } from '../../kit/assert/seeded.js';

export const serverFaults = [
  'away',
  'slow',
  'cut',
  'hang',
  'redirect',
  'redirect loop',
  'garbage',
  'bit turned',
  'endless',
  'busy',
  'busy for decades',
  'error',
  'not found',
  'empty',
] as const;
export type ServerFault = (typeof serverFaults)[number];

export interface FaultyServer {
  readonly url: string;
  fault: ServerFault | undefined;
  /** The error of the server's clock, which its `Date` header shows. */
  wrongByMs: number;
  /** The number of responses that are about to be sent, without those that hang. */
  answers(): number;
  requests(): number;
  endConnections(): void;
  close(): Promise<void>;
}

export interface ServerOptions {
  readonly files: ReadonlyMap<string, Buffer>;
  readonly random: Seeded;
  readonly nowMs: () => number;
}

export async function faultyServer({ files, random, nowMs }: ServerOptions): Promise<FaultyServer> {
  let answers = 0;
  let requests = 0;
  const sockets = new Set<Socket>();
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    requests += 1;
    response.setHeader('date', new Date(nowMs() + server.wrongByMs).toUTCString());
    const path = (request.url ?? '/').slice(1);
    if (server.fault !== 'hang' && server.fault !== 'endless') {
      answers += 1;
      response.once('close', () => {
        answers -= 1;
      });
    }
    answer({ path, response, bytes: files.get(path), random, fault: server.fault });
  };
  const http: Server = createServer(serve);
  http.on('connection', (socket: Socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const endConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server: FaultyServer = {
    url: `http://127.0.0.1:${port}/`,
    fault: undefined,
    wrongByMs: 0,
    answers: () => answers,
    requests: () => requests,
    endConnections,
    close: async () => {
      endConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return server;
}

interface Answer {
  readonly path: string;
  readonly response: ServerResponse;
  readonly bytes: Buffer | undefined;
  readonly random: Seeded;
  readonly fault: ServerFault | undefined;
}

function answer(given: Answer): void {
  const { fault, response, path } = given;
  if (given.bytes === undefined) {
    sendBytes(given);
    return;
  }
  switch (fault) {
    case undefined:
    case 'slow':
      sendBytes(given);
      return;
    case 'away':
      response.destroy();
      return;
    case 'hang':
      return;
    case 'redirect':
      response.writeHead(302, { location: 'http://192.0.2.1/elsewhere' }).end();
      return;
    case 'redirect loop':
      response.writeHead(307, { location: `/${path}` }).end();
      return;
    case 'busy':
      response.writeHead(429, { 'retry-after': String(given.random.int(900)) }).end();
      return;
    case 'busy for decades':
      response
        .writeHead(503, { 'retry-after': given.random.pick(['999999999', '-5', 'soon', ' 1e9']) })
        .end();
      return;
    case 'error':
      response.writeHead(given.random.pick([400, 403, 500, 502, 599])).end('no');
      return;
    case 'not found':
      response.writeHead(404).end();
      return;
    default:
      sendWrongBytes(given, given.bytes);
  }
}

function sendBytes({ response, bytes, fault }: Answer): void {
  const end = (): void => {
    if (bytes === undefined) response.writeHead(404).end();
    else response.end(bytes);
  };
  if (fault === 'slow') setTimeout(end, 20);
  else end();
}

/** Responds with wrong bytes: cut, changed, random or endless. */
function sendWrongBytes({ response, random, fault }: Answer, bytes: Buffer): void {
  switch (fault) {
    case 'cut':
      response.writeHead(200, { 'content-length': bytes.length });
      response.write(bytes.subarray(0, random.int(bytes.length + 1)), () => response.destroy());
      return;
    case 'bit turned': {
      const changed = Buffer.from(bytes);
      const at = random.int(changed.length);
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << random.int(8)), at);
      response.end(changed);
      return;
    }
    case 'garbage':
      response.end(Buffer.alloc(random.int(5000), random.pick(['{', '[', '\0', '"'])));
      return;
    case 'endless': {
      const chunk = Buffer.alloc(65_536, 0x20);
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
      return;
    }
    default:
      response.end();
  }
}
