// A worker like the one in Azure's outage of 2025-10-29: it accepts every configuration at once, and a task of its own reads
// the rest later. Content that this task cannot read ends the process. Usage: edge.js CONFIG SOCKET TASK_DELAY_MS
import { readFileSync } from 'node:fs';
import { serveOn } from './serve.js';

interface EdgeConfig {
  readonly version: string;
  readonly tenants: readonly { readonly routes: readonly string[] | null }[];
}

const [path = '', socket = '', taskDelayMs = '0'] = process.argv.slice(2);

function takeConfig(): EdgeConfig {
  const taken = JSON.parse(readFileSync(path, 'utf8')) as EdgeConfig;
  setTimeout(() => {
    // The fault: one version of the control plane writes `null`, and this task of another one does not expect it.
    for (const { routes } of taken.tenants) (routes as readonly string[]).map((one) => one.length);
  }, Number(taskDelayMs));
  return taken;
}

let config = takeConfig();
serveOn(socket, () => config.version);
process.on('SIGHUP', () => {
  config = takeConfig();
});
