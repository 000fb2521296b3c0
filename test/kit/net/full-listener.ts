// A listener on loopback with a full backlog, so that Linux drops the next SYN without an answer.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

/** Python, because Node accepts each connection at once. */
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
 * @param drain on abort the listener accepts all connections; a waiting attempt connects with its next SYN, within seconds
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
