// A worker after Cloudflare's web application firewall of 2019-07-02: rules are regular expressions, and one of them takes seconds for
// an ordinary request. The process lives and uses a whole processor. Between two requests it still hears a reload.
// Usage: waf.js RULES SOCKET TRAFFIC_DELAY_MS
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';

const [file = '', socket = '', trafficDelayMs = '0'] = process.argv.slice(2);
/** An ordinary request, as it comes again and again. */
const body = `x${'='.repeat(40)}${'x'.repeat(1600)}`;
const gapMs = 20;

interface Rules {
  readonly version: string;
  readonly patterns: readonly RegExp[];
  readonly fromMs: number;
}

/** The traffic that meets a new rule comes a while after it was loaded. */
function readRules(): Rules {
  const [version = '', ...patterns] = readFileSync(file, 'utf8').trimEnd().split('\n');
  const fromMs = performance.now() + Number(trafficDelayMs);
  return { version, patterns: patterns.map((one) => new RegExp(one)), fromMs };
}

let rules = readRules();

function handleTraffic(): void {
  if (performance.now() >= rules.fromMs) for (const pattern of rules.patterns) pattern.test(body);
  setTimeout(handleTraffic, gapMs);
}

rmSync(socket, { force: true });
createServer((request, response) => {
  if (request.url === '/reload') rules = readRules();
  response.end(rules.version);
}).listen(socket);
handleTraffic();
