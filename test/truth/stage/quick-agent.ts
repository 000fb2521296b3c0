// An agent in its own process, as `writ agent` runs it, but with shorter intervals between checks of its workers: no
// configuration or environment variable may set such intervals. Usage: quick-agent agent --config FILE
import { startAgent } from '../../../src/agent/agent.js';
import { thisMachine } from '../../../src/agent/identity/install-id.js';
import { createLog } from '../../../src/platform/telemetry/log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { quickIntervals } from '../rules/pace.js';

const [, , , , configPath = ''] = process.argv;
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
await startAgent({
  configPath,
  version: '0.1.0',
  clock: systemClock,
  log: createLog('writ-agent', 'info'),
  random01: Math.random,
  install: thisMachine,
  stop: stop.signal,
  onReload: () => () => undefined,
  intervals: quickIntervals,
});
