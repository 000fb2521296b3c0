// A listener on loopback that lets connections wait: its backlog is full, so that Linux drops the next SYN and says nothing.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

/** Node accepts whatever comes; Python accepts only when it is asked to. */
const listener = `
import socket, sys
server = socket.socket()
server.bind((sys.argv[1], 0))
server.listen(0)
print(server.getsockname()[1], flush=True)
sys.stdin.readline()
kept = []
while True: kept.append(server.accept())
`;

/**
 * @param drain when it aborts, the listener accepts everything; an attempt that waits connects with its next SYN, within seconds
 * @returns its port
 */
export async function fullListener(
  context: TestContext,
  address: string,
  drain?: AbortSignal,
): Promise<number> {
  const child = spawn('python3', ['-c', listener, address], { stdio: ['pipe', 'pipe', 'inherit'] });
  context.after(() => void child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const port = Number(line);
  drain?.addEventListener('abort', () => child.stdin.end('go\n'));
  const filler = connect({ host: address, port });
  context.after(() => void filler.destroy());
  await once(filler, 'connect');
  return port;
}
