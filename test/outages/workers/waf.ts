// A worker like Cloudflare's web application firewall of 2019-07-02: rules are regular expressions, and one never ends for an
// ordinary request. A master responds to reloads, and its child handles the traffic; the child stays alive, uses a whole
// processor, and responds no more. Usage: waf.js RULES SOCKET ADMIN_SOCKET TRAFFIC_DELAY_MS
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { serveOn } from './serve.js';

const [file = '', socket = '', adminSocket = '', trafficDelayMs = '0', role = 'master'] =
  process.argv.slice(2);
/** An ordinary request. */
const body = `${'x'.repeat(60)}!`;
const gapMs = 50;

function handleTraffic(patterns: readonly RegExp[]): void {
  for (const pattern of patterns) pattern.test(body);
  setTimeout(() => handleTraffic(patterns), gapMs);
}

function runChild(): void {
  const [version = '', ...patterns] = readFileSync(file, 'utf8').trimEnd().split('\n');
  serveOn(socket, () => version);
  // Traffic reaches a new rule a while after it was loaded.
  setTimeout(() => handleTraffic(patterns.map((one) => new RegExp(one))), Number(trafficDelayMs));
}

function startChild(): ChildProcess {
  const stdio = ['ignore', 'ignore', 'inherit'] as const;
  return spawn(process.execPath, [...process.argv.slice(1), 'child'], { stdio: [...stdio] });
}

function runMaster(): void {
  let child = startChild();
  rmSync(adminSocket, { force: true });
  createServer((_request, response) => {
    child.kill('SIGKILL');
    child = startChild();
    response.end('reloaded');
  }).listen(adminSocket);
}

if (role === 'child') runChild();
else runMaster();
