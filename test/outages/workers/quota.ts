// A worker after Google's Service Control of 2025-06-12: a policy with a blank field reaches code that no policy had reached before. The
// policy is used by the first request after it was read, which here comes by a timer. Usage: quota.js POLICY SOCKET PID_FILE
import { readFileSync, writeFileSync } from 'node:fs';
import { serveOn } from './serve.js';

interface Policy {
  readonly version: string;
  readonly quotas: readonly { readonly project: string; readonly limit?: { readonly perMinute: number } }[];
}

const [path = '', socket = '', pidFile = ''] = process.argv.slice(2);
/** At a start requests wait already. */
const [atStartMs, atHupMs] = [1500, 2500];

function readPolicy(firstRequestMs: number): Policy {
  const policy = JSON.parse(readFileSync(path, 'utf8')) as Policy;
  // The fault: `limit` may be blank, and nothing handles the error.
  setTimeout(() => {
    for (const { limit } of policy.quotas) Number((limit as { perMinute: number }).perMinute);
  }, firstRequestMs);
  return policy;
}

let policy = readPolicy(atStartMs);
writeFileSync(pidFile, `${process.pid}\n`);
serveOn(socket, () => policy.version);
process.on('SIGHUP', () => {
  policy = readPolicy(atHupMs);
});
