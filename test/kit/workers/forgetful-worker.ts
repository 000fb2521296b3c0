// A worker process that has its policy in memory only: it uses the last notification, and nothing after a restart.
import { spawn } from 'node:child_process';

export interface ForgetfulWorker {
  readonly pid: number;
  readonly port: number;
  /** @returns the policy that it uses; `EMPTY` before its first notification */
  serves(): Promise<string>;
  kill(): Promise<void>;
}

const program = `
const net = require('node:net');
const http = require('node:http');
const readline = require('node:readline');
const [kind, place] = process.argv.slice(1);
let policy = 'EMPTY';
const take = (text) => { policy = text.trim(); return 'ok'; };
const server = kind === 'line'
  ? net.createServer((socket) => readline.createInterface(socket).once('line', (line) => socket.end(take(line) + '\\n')))
  : http.createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => { body += chunk; });
      request.on('end', () => response.end(take(body)));
    });
readline.createInterface(process.stdin).on('line', () => console.log(policy));
const where = kind === 'line' ? place : { port: Number(place), host: '127.0.0.1' };
server.listen(where, () => console.log(server.address().port ?? 0));
`;

/** @param place path of a unix socket for `line`, a port (0: any) for `http` */
export async function startForgetfulWorker(
  kind: 'http' | 'line',
  place: string | number,
): Promise<ForgetfulWorker> {
  const child = spawn(process.execPath, ['-e', program, kind, String(place)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const line = (): Promise<string> =>
    new Promise((resolve) => child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString().trim())));
  const port = Number(await line());
  return {
    pid: child.pid ?? 0,
    port,
    serves: () => {
      const policyLine = line();
      child.stdin.write('\n');
      return policyLine;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
