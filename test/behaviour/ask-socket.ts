// `node ask-socket.js SOCKET ANSWERS`: sends stdin to a unix socket as it is, and prints what comes back: so many lines
// (greeting included), or all until the other side ends the connection. Knows no protocol, so that it can break one.
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';

const patienceMs = 8000;
const [socketPath = '', answers = '0'] = process.argv.slice(2);
const wanted = Number(answers);

const socket = createConnection(socketPath);
let heard = '';
const end = (how: string): void => {
  process.stdout.write(heard);
  process.stdout.write(`\n[${how}]\n`);
  process.exit(0);
};
setTimeout(() => end('nothing more came'), patienceMs);
socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'error'));
socket.on('close', () => end('closed'));
socket.on('data', (chunk: Buffer) => {
  heard += chunk.toString('utf8');
  const lines = heard.split('\n');
  if (wanted > 0 && lines.length > wanted) {
    heard = lines.slice(0, wanted).join('\n');
    end('enough');
  }
});
socket.on('connect', () => socket.write(readFileSync(0)));
