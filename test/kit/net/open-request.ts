// A request for which a test sends the headers first and the body later; the answer may arrive before the body ends.
import { connect, type Socket } from 'node:net';

export interface OpenRequest extends AsyncDisposable {
  /** Status, and the error code of the answer if it has one. */
  readonly answer: Promise<readonly [number, string]>;
  readonly closed: Promise<unknown>;
  send(text: string): void;
}

/** Sends the headers of a POST; the test sends its body. */
export function openRequest(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): OpenRequest {
  const { port, hostname } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  const lines = Object.entries({ host: 'fleet', 'content-type': 'application/json', ...headers });
  socket.write(
    `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  );
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const answer = new Promise<readonly [number, string]>((resolve, reject) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const [head = '', body = ''] = text.split('\r\n\r\n', 2);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (!(body.length >= length)) return;
      resolve([Number(head.slice(9, 12)), /"code":"(\w+)"/.exec(body)?.[1] ?? '']);
    });
    socket.on('error', reject);
    const timer = setTimeout(() => reject(new Error('no answer within a minute')), 60_000);
    void closed.then(() => {
      clearTimeout(timer);
      reject(new Error('closed without an answer'));
    });
  });
  answer.catch(() => undefined);
  return {
    ...{ answer, closed },
    send: (text) => socket.write(text),
    [Symbol.asyncDispose]: async () => {
      socket.destroy();
      await closed;
    },
  };
}
