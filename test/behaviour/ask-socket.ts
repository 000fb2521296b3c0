// `node ask-socket.js SOCKET ANSWERS` sends stdin to a unix socket unchanged, and prints that many lines of the response (with
// the greeting), or all until the peer closes the connection. Knows no protocol, so that scripts can send invalid requests.
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';

const patienceMs = 8000;
const [socketPath = '', answers = '0'] = process.argv.slice(2);
const wanted = Number(answers);

const socket = createConnection(socketPath);
let received = '';
const end = (how: string): void => {
  process.stdout.write(received);
  process.stdout.write(`\n[${how}]\n`);
  process.exit(0);
};
setTimeout(() => end('nothing more came'), patienceMs);
socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'error'));
socket.on('close', () => end('closed'));
socket.on('data', (chunk: Buffer) => {
  received += chunk.toString('utf8');
  const lines = received.split('\n');
  if (wanted > 0 && lines.length > wanted) {
    received = lines.slice(0, wanted).join('\n');
    end('enough');
  }
});
socket.on('connect', () => socket.write(readFileSync(0)));
