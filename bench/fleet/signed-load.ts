// Signed reports as hosts send them, made before they are sent so that signing is not a part of the measured time, and sent over connections
// that are kept, each sends its next request after an answer. The cost of this process is reported beside the rates.
import { sign } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { signedHeaders } from '../../src/agent/fleet/sign-request.js';
import { fleetHeaders, fleetPaths, signedParts } from '../../src/core/fleet/signed-request.js';
import type { KeyedHost } from './stored-hosts.js';

export interface SignedLoad {
  readonly url: URL;
  readonly connections: number;
  /** `for each`: a connection for each report, as hosts do. */
  readonly held: 'for all' | 'for each';
}

/** @returns the bytes of one request */
export async function signedRequest(
  { url, fleet }: { readonly url: URL; readonly fleet: string },
  { keyId, privateKey }: KeyedHost,
  { body, counter, nowMs }: { readonly body: string; readonly counter: number; readonly nowMs: number },
): Promise<Buffer> {
  const signed = await signedHeaders({
    ...{ method: 'POST', url: new URL(fleetPaths.reports, url), body, keyId, createdMs: nowMs },
    headers: { [fleetHeaders.fleet]: fleet, [fleetHeaders.counter]: String(counter) },
    parts: signedParts.first,
    sign: (bytes) => sign(null, bytes, privateKey),
  });
  const headers = { host: url.host, 'content-type': 'application/json', ...signed };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST /${fleetPaths.reports} HTTP/1.1\r\n${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body, 'utf8');
}

export interface Sent {
  /** How long each waited for its answer, in milliseconds. */
  readonly waits: Float64Array;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** Sends all, each host's in its order. */
export async function sendAll(load: SignedLoad, byHost: readonly (readonly Buffer[])[]): Promise<Sent> {
  const waits = new Float64Array(byHost.reduce((sum, requests) => sum + requests.length, 0));
  let [sent, sentBytes, receivedBytes] = [0, 0, 0];
  const lanes = Array.from({ length: load.connections }, (_, lane) => turns(byHost, lane, load.connections));
  const send = async (requests: readonly Buffer[]): Promise<void> => {
    const socket = await connected(load.url);
    try {
      for (const request of requests) {
        const atMs = performance.now();
        await answered(socket, request);
        waits[sent++] = performance.now() - atMs;
      }
    } finally {
      sentBytes += socket.bytesWritten;
      receivedBytes += socket.bytesRead;
      socket.destroy();
    }
  };
  await Promise.all(
    lanes.map(async (requests) => {
      if (load.held === 'for all') return send(requests);
      for (const request of requests) await send([request]);
    }),
  );
  return { waits, sentBytes, receivedBytes };
}

async function connected(url: URL): Promise<Socket> {
  const isTls = url.protocol === 'https:';
  const at = { port: Number(url.port), host: url.hostname };
  // The certificate is the bench's own, and its verification by a host does not load the server.
  const socket = isTls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at);
  socket.setNoDelay().setEncoding('latin1');
  await once(socket, isTls ? 'secureConnect' : 'connect');
  // Its 'close' afterwards ends the waiting request; after another failure it has no listener.
  socket.on('error', () => undefined);
  return socket;
}

/** Of the hosts of one connection: the first report of each, then the second of each. */
function turns(byHost: readonly (readonly Buffer[])[], lane: number, lanes: number): Buffer[] {
  const mine = byHost.filter((_, at) => at % lanes === lane);
  const most = Math.max(0, ...mine.map((requests) => requests.length));
  return Array.from({ length: most }, (_, round) => mine.flatMap((requests) => requests[round] ?? [])).flat();
}

function answered(socket: Socket, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    const receive = (part: string): void => {
      text += part;
      const head = text.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
      if (text.length < head + 4 + length) return;
      socket.off('data', receive).off('close', cut);
      if (text.startsWith('HTTP/1.1 200')) resolve();
      else reject(new Error(text.slice(0, 600)));
    };
    const cut = (): void => reject(new Error('the server closed a connection'));
    socket.on('data', receive).once('close', cut).write(request);
  });
}
