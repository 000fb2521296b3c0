// A worker with a fault: it takes every policy at once, and a task some seconds later ends the process where `routes` is empty.
// Usage: edge-worker.js POLICY SOCKET, and as a probe: edge-worker.js ask POLICY SOCKET
import { readFileSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';

interface EdgePolicy {
  readonly version: string;
  readonly routes: readonly string[];
}

const taskDelayMs = 5000;
const answerMs = 3000;

function readPolicy(path: string): EdgePolicy {
  return JSON.parse(readFileSync(path, 'utf8')) as EdgePolicy;
}

function serve(path: string, socket: string): void {
  const take = (): EdgePolicy => {
    const taken = readPolicy(path);
    setTimeout(() => {
      // The fault: nobody tried an empty list.
      (taken.routes[0] as string).toUpperCase();
    }, taskDelayMs);
    return taken;
  };
  let policy = take();
  rmSync(socket, { force: true });
  createServer((_request, response) => response.end(`${policy.version}\n`)).listen(socket);
  process.on('SIGHUP', () => {
    policy = take();
  });
  // Where supervisord was killed, its worker must not stay.
  const parent = process.ppid;
  setInterval(() => (process.ppid === parent ? undefined : process.exit(0)), 500);
}

function ask(path: string, socketPath: string): void {
  const wanted = readPolicy(path).version;
  setTimeout(() => process.exit(1), answerMs);
  request({ socketPath, path: '/' }, (response) => {
    response.setEncoding('utf8').once('data', (text: string) => process.exit(text.trim() === wanted ? 0 : 1));
  })
    .once('error', () => process.exit(75))
    .end();
}

const [first = '', second = '', third = ''] = process.argv.slice(2);
if (first === 'ask') ask(second, third);
else serve(first, second);
