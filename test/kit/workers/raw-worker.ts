// A native worker that sends single lines of the protocol, so that a test can send any message at any time. writ/sdk has the
// correct worker.
import { createConnection } from 'node:net';
import { until } from '../assert/until.js';

export interface RawWorker {
  /** Sends a message, or unchanged bytes. */
  send(message: object | string | Uint8Array): void;
  /** @returns the next line of the agent; throws if the agent closes first */
  line(): Promise<string>;
  /** Waits until the connection is closed; throws after a minute. */
  closed(): Promise<void>;
  /** Stops reading. */
  pause(): void;
  end(): void;
}

/**
 * Connects to the socket at the path.
 * @returns a worker; `line` throws after the connection is closed
 */
export function rawWorker(path: string): RawWorker {
  const socket = createConnection({ path });
  const lines: string[] = [];
  const waiting: ((line: string | undefined) => void)[] = [];
  let pending = '';
  let isClosed = false;
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    const parts = `${pending}${chunk}`.split('\n');
    pending = parts.pop() ?? '';
    for (const line of parts) {
      const taker = waiting.shift();
      if (taker === undefined) lines.push(line);
      else taker(line);
    }
  });
  socket.on('close', () => {
    isClosed = true;
    for (const taker of waiting.splice(0)) taker(undefined);
  });
  return {
    send: (message) => {
      const isRaw = typeof message === 'string' || message instanceof Uint8Array;
      socket.write(isRaw ? message : `${JSON.stringify(message)}\n`);
    },
    line: async () => {
      const ready = lines.shift();
      if (ready !== undefined) return ready;
      const line = isClosed ? undefined : await new Promise<string | undefined>((take) => waiting.push(take));
      if (line === undefined) throw new Error('the agent closed the connection');
      return line;
    },
    closed: () => until(() => isClosed),
    pause: () => void socket.pause(),
    end: () => void socket.destroy(),
  };
}

/** Connects and sends the greeting and `hello`. @returns the worker; the agent's greeting is read */
export async function joinAs(path: string, name: string, pid = 4711): Promise<RawWorker> {
  const worker = rawWorker(path);
  worker.send({ writ: 1, version: '0.1.0' });
  worker.send({ type: 'hello', name, pid });
  await worker.line();
  return worker;
}
