// A worker after Cloudflare's of 2025-11-18: memory for 200 features is reserved, and a longer list ends the process. It reads the list
// some time after HUP, in a task of its own, as that one did. Usage: scorer.js FEATURES SOCKET DELAY_MS
import { readFileSync } from 'node:fs';
import { serveOn } from './serve.js';

const maxFeatures = 200;
const [features = '', socket = '', delayMs = '0'] = process.argv.slice(2);

function readFeatures(): string {
  const [version = '', ...names] = readFileSync(features, 'utf8').trimEnd().split('\n');
  const reserved = new Array<string>(maxFeatures).fill('');
  for (const [index, name] of names.entries()) {
    // The fault: the limit was meant for the machine, and its error is handled nowhere.
    if (index >= reserved.length) throw new Error(`more than ${maxFeatures} features`);
    reserved[index] = name;
  }
  return version;
}

let uses = readFeatures();
serveOn(socket, () => uses);
process.on('SIGHUP', () => {
  setTimeout(() => {
    uses = readFeatures();
  }, Number(delayMs));
});
