// A real datagram socket of a service manager in Python, because Node has none. It prints the datagrams with the time of arrival,
// and closes the descriptor of a barrier as systemd does.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { until } from '../assert/until.js';

const script = `
import array, json, os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('"bound"', flush=True)
while True:
    data, ancillary, flags, sender = s.recvmsg(65536, socket.CMSG_SPACE(64))
    usec = time.monotonic_ns() // 1000
    for level, kind, content in ancillary:
        if kind == socket.SCM_RIGHTS:
            fds = array.array('i')
            fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
            for fd in fds: os.close(fd)
    print(json.dumps({'lines': data.decode().split('\\n'), 'usec': usec}), flush=True)
`;

const send = `
import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), sys.argv[1])
`;

export interface Datagram {
  readonly lines: readonly string[];
  /** CLOCK_MONOTONIC at its arrival, in microseconds. */
  readonly usec: number;
}

export interface NotifyListener extends AsyncDisposable {
  /** Path for NOTIFY_SOCKET. */
  readonly socket: string;
  /** Received datagrams, in order. */
  readonly datagrams: readonly Datagram[];
  /** @returns the datagrams with this line */
  withLine(line: string): Datagram[];
  /** Resolves after a datagram with this line has arrived. */
  has(line: string): Promise<void>;
  /** Resolves after all datagrams sent before this call have arrived, because datagrams keep their order. */
  caughtUp(): Promise<void>;
}

/** @example await using manager = await listenForNotices(dir.join('notify')); */
export async function listenForNotices(socket: string): Promise<NotifyListener> {
  const child: ChildProcess = spawn('python3', ['-c', script, socket], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const datagrams: Datagram[] = [];
  let isBound = false;
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const value = JSON.parse(line) as Datagram | 'bound';
      if (value === 'bound') isBound = true;
      else datagrams.push(value);
    });
  }
  await until(() => isBound);
  const withLine = (line: string): Datagram[] => datagrams.filter(({ lines }) => lines.includes(line));
  const has = (line: string): Promise<void> => until(() => withLine(line).length > 0);
  let marks = 0;
  return {
    socket,
    datagrams,
    withLine,
    has,
    caughtUp: async () => {
      marks += 1;
      const mark = `MARK=${marks}`;
      await once(spawn('python3', ['-c', send, socket, mark], { stdio: 'inherit' }), 'exit');
      await has(mark);
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
