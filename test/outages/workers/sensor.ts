// A worker after CrowdStrike's of 2024-07-19: its reader has a table of twenty fields, and the template has as many as its author wrote.
// It reads the template at its start and at HUP. Usage: sensor.js TEMPLATE SOCKET
import { readFileSync } from 'node:fs';
import { serveOn } from './serve.js';

const fieldCount = 20;
const [template = '', socket = ''] = process.argv.slice(2);

interface Field {
  pattern: string;
}

function readTemplate(): string {
  const { version, fields } = JSON.parse(readFileSync(template, 'utf8')) as {
    version: string;
    fields: string[];
  };
  const table = Array.from({ length: fieldCount }, (): Field => ({ pattern: '*' }));
  fields.forEach((pattern, index) => {
    // The fault: index 20 is outside of the table.
    (table[index] as Field).pattern = pattern;
  });
  return version;
}

let uses = readTemplate();
serveOn(socket, () => uses);
process.on('SIGHUP', () => {
  uses = readTemplate();
});
