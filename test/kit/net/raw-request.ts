// Sends bytes over a plain socket and records the answer, for requests that a correct client cannot send.
import { connect } from 'node:net';

export interface RawAnswer {
  /** 0 if the connection ended without an answer. */
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** @param text bytes of the request. @returns the answer after the server ended the connection */
export function rawRequest(url: string, text: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on('data', (chunk) => chunks.push(chunk));
    // A reset is an answer too: the server rejected the request.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(parseAnswer(Buffer.concat(chunks).toString('latin1'))));
  });
}

/** Sends a GET with exactly this request target, which closes the connection. */
export function rawGet(url: string, target: string): Promise<RawAnswer> {
  return rawRequest(url, `GET ${target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`);
}

function parseAnswer(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    status: Number(statusLine.split(' ')[1] ?? 0),
    headers: new Map(headers),
    body: rest.join('\r\n\r\n'),
  };
}
