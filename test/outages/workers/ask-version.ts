// A probe: exit 0 when the worker uses the version in a file, 1 when it uses another one, 75 when nothing listens. It waits
// for an answer as long as it may. Usage: ask-version.js SOCKET FILE
import { readFileSync } from 'node:fs';
import { request } from 'node:http';

const [socketPath = '', file = ''] = process.argv.slice(2);
const wanted = readFileSync(file, 'utf8').trim();

function end(exitCode: number, text: string): void {
  process.stdout.write(`${text}\n`, () => process.exit(exitCode));
}

request({ socketPath, path: '/' }, (response) => {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  response.once('end', () => end(text.trim() === wanted ? 0 : 1, `the worker uses ${text.trim()}`));
})
  .once('error', (error) => end(75, error.message))
  .end();
