// A fake kresd worker: its control socket behaves byte by byte as that of the real 5.6, with faults on demand. The real program
// is in real-kresd.ts.
import { createServer, type Socket } from 'node:net';

export interface FakeKresdOptions {
  /** The release that has these answers. Those of 6.4.2 were recorded once; the real program here is 5.6. */
  readonly release?: '5.6' | '6.4';
  /** Undefined: the prompt `> ` comes first, as without `kresd -q`. */
  readonly prompt?: 'none';
  /** Answer to a command; the recorded answers by default. */
  readonly answer?: (command: string) => string;
  /** Bytes of each write; 1 splits everything. */
  readonly chunkBytes?: number;
  /** `hang`: no answer. `close`: ends the connection inside the answer. `huge`: announces 3 GB. `twice`: two answers. */
  readonly behaviour?: 'hang' | 'close' | 'huge' | 'twice';
}

export interface FakeKresd {
  /** @returns all bytes received so far, in order */
  received(): string;
  connections(): number;
  close(): Promise<void>;
}

const real: Readonly<Record<string, string>> = {
  '1+1': '2',
  nil: 'nil',
  'policy_reset()': '0',
  'error("boom")': '[string "return table_print(error("boom"))"]:1: boom',
  "require('ffi').C.kr_rules_reset()":
    "[string \"return table_print(require('ffi').C.kr_rules_reset())\"]:1: missing declaration for symbol 'kr_rules_reset'",
};

const real6: Readonly<Record<string, string>> = {
  ...real,
  'policy_reset()':
    '[string "return table_print(policy_reset())"]:1: attempt to call global \'policy_reset\' (a nil value)',
  "require('ffi').C.kr_rules_reset()": '0',
};

/** @returns the text in the binary mode of kresd: its length in four bytes, big-endian, then its bytes */
export function kresdFrame(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(text));
  return Buffer.concat([length, Buffer.from(text)]);
}

/** Listens on the path until `close`. */
export async function startFakeKresd(path: string, options: FakeKresdOptions = {}): Promise<FakeKresd> {
  const sockets = new Set<Socket>();
  let received = '';
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    if (options.prompt !== 'none') socket.write('> ');
    let pending = '';
    let binary = false;
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const lines = `${pending}${chunk.toString('latin1')}`.split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '__binary') binary = true;
        else if (binary) respond(socket, line, options);
        else if (line !== '__json' || options.release !== '6.4') socket.write('text mode\n> ');
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    received: () => received,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

function respond(socket: Socket, command: string, options: FakeKresdOptions): void {
  const table = options.release === '6.4' ? real6 : real;
  const frame = kresdFrame(options.answer?.(command) ?? table[command] ?? 'nil');
  switch (options.behaviour) {
    case 'hang':
      return;
    case 'close':
      socket.end(frame.subarray(0, frame.length - 1));
      return;
    case 'huge':
      socket.write(Buffer.from([0xb2, 0xd0, 0x5e, 0x00, 0x30]));
      return;
    case 'twice':
      socket.write(Buffer.concat([frame, kresdFrame('a second answer')]));
      return;
    default:
      void writeSplit(socket, frame, options.chunkBytes ?? frame.length);
  }
}

async function writeSplit(socket: Socket, bytes: Buffer, size: number): Promise<void> {
  socket.setNoDelay(true);
  for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
    socket.write(bytes.subarray(at, at + size));
    await new Promise((resolve) => setImmediate(resolve));
  }
}
