// A TCP proxy between a host and the server with faults on request: it refuses connections, hangs, sends slowly, cuts a
// response after some bytes, or flips a bit in it. Without knowledge of HTTP.
import { createServer, type Server, Socket } from 'node:net';
import type { Seeded } from '../../../kit/assert/seeded.js';

export const connectionFaults = ['refuse', 'hang', 'drip', 'cut', 'flip'] as const;
export type ConnectionFault = (typeof connectionFaults)[number];

export interface FaultyProxy {
  readonly port: number;
  /** Sets the fault of new connections and ends the open ones; undefined for no fault. */
  setFault(fault: ConnectionFault | undefined): void;
  /** Sets the port of the server. */
  target(port: number): void;
  close(): Promise<void>;
}

export async function faultyProxy(random: Seeded): Promise<FaultyProxy> {
  const open = new Set<Socket>();
  let fault: ConnectionFault | undefined;
  let targetPort = 0;
  const keep = (socket: Socket): Socket => {
    open.add(socket);
    return socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket));
  };
  const server: Server = createServer((client) => {
    keep(client);
    if (fault === 'refuse') {
      client.destroy();
      return;
    }
    if (fault === 'hang') return;
    const upstream = keep(new Socket()).connect(targetPort, '127.0.0.1');
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.end());
    client.pipe(upstream);
    answer(upstream, client, { fault, random });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const end = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (server.address() as { port: number }).port,
    setFault: (next) => {
      fault = next;
      end();
    },
    target: (port) => {
      targetPort = port;
      end();
    },
    close: async () => {
      end();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

interface AnswerOptions {
  readonly fault: ConnectionFault | undefined;
  readonly random: Seeded;
}

function answer(upstream: Socket, client: Socket, { fault, random }: AnswerOptions): void {
  let left = fault === 'cut' || fault === 'flip' ? random.int(random.once(2) ? 2000 : 400_000) : 0;
  upstream.on('data', (chunk: Buffer) => {
    if (fault === 'cut' && chunk.length >= left) {
      client.write(chunk.subarray(0, left));
      client.destroySoon();
      upstream.destroy();
      return;
    }
    if (fault === 'flip' && left >= 0 && chunk.length > left) chunk[left] = (chunk[left] ?? 0) ^ 0x20;
    left -= chunk.length;
    if (fault !== 'drip') {
      if (!client.write(chunk)) {
        upstream.pause();
        client.once('drain', () => upstream.resume());
      }
      return;
    }
    upstream.pause();
    client.write(chunk.subarray(0, 4096));
    const rest = chunk.subarray(4096);
    if (rest.length > 0) upstream.unshift(rest);
    setTimeout(() => upstream.resume(), 40);
  });
}
