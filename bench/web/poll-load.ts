// Hosts that ask for the timestamp again and again on a connection each, as agents with nothing new do: as many as are
// wanted, from one process. Owns the questions; what they cost the server is read from the server.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface PollLoad {
  /** Of the file that is asked for. */
  readonly url: URL;
  readonly hosts: number;
  /** Of all hosts together, spread evenly. */
  readonly polls: number;
}

const atOnce = 100;
const endOfHead = '\r\n\r\n';

/** @param whileHeld runs when all are connected and have asked once @returns what it returned */
export async function pollAll<T>(
  { url, hosts, polls }: PollLoad,
  whileHeld: (ask: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const etag = (await fetch(url)).headers.get('etag') ?? '';
  const question = `GET ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\nif-none-match: ${etag}\r\n\r\n`;
  const sockets: Socket[] = [];
  try {
    const join = async (): Promise<void> => {
      const socket = connect(Number(url.port), url.hostname).setNoDelay();
      sockets.push(socket);
      await once(socket, 'connect');
      await askOn(socket.setEncoding('latin1'), question, 1);
    };
    // Not all at once: more than a server lets wait would be tried again a second later.
    for (let joined = 0; joined < hosts; joined += atOnce) {
      await Promise.all(Array.from({ length: Math.min(atOnce, hosts - joined) }, join));
    }
    const each = Math.ceil(polls / hosts);
    return await whileHeld(async () => {
      await Promise.all(sockets.map((socket) => askOn(socket, question, each)));
    });
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

function askOn(socket: Socket, question: string, times: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let [left, head] = [times, ''];
    const answer = (text: string): void => {
      head += text;
      if (!head.endsWith(endOfHead)) return;
      if (!head.startsWith('HTTP/1.1 304')) {
        reject(new Error(head.slice(0, 200)));
        return;
      }
      head = '';
      left -= 1;
      if (left > 0) socket.write(question);
      else end();
    };
    const cut = (): void => reject(new Error('the server closed a connection'));
    const end = (): void => {
      socket.off('data', answer).off('close', cut).off('error', reject);
      resolve();
    };
    socket.on('data', answer).once('close', cut).once('error', reject).write(question);
  });
}
