// `npm run simulate -- --hosts 100000`: the load of a fleet on its server in virtual time, on a normal day, and in and after an
// outage of a day, by the schedule and the retries of hosts. Deterministic for a seed. Exit 1 if hosts send as a herd.
// `--http`: a few of them in real time over real HTTP (`--hosts 50 --every 10`), exit 1 if a host does not report again.
import { parseArgs } from 'node:util';
import { sampleReport } from '../fleet/sample-host.js';
import { runHttpFleet } from './http-fleet.js';
import { drawRun, summarize } from './run-report.js';
import { type Fault, runVirtualFleet, type VirtualFleetOptions } from './virtual-fleet.js';

const hourMs = 3_600_000;
const faults: readonly Fault[] = ['none', 'one phase', 'impatient'];

interface Asked {
  readonly options: VirtualFleetOptions;
  readonly over: 'virtual time' | 'http';
  readonly output: 'text' | 'json';
}

/** @throws Error for a flag that there is not, or a number that is none */
function asked(args: readonly string[]): Asked {
  const { values } = parseArgs({
    args: [...args],
    options: {
      hosts: { type: 'string', default: '100000' },
      every: { type: 'string', default: '300' },
      outage: { type: 'string', default: '24' },
      seed: { type: 'string', default: '1' },
      capacity: { type: 'string', default: '2000' },
      fault: { type: 'string', default: 'none' },
      http: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const count = (name: 'hosts' | 'every' | 'outage' | 'seed' | 'capacity', least: number): number => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < least)
      throw new Error(`--${name} takes a number from ${least} on`);
    return value;
  };
  const fault = faults.find((one) => one === values.fault);
  if (fault === undefined) throw new Error(`--fault takes one of: ${faults.join(', ')}`);
  const capacity = count('capacity', 1);
  return {
    options: {
      ...{ hosts: count('hosts', 1), everyMs: count('every', 1) * 1000, seed: count('seed', 0), fault },
      ...{ capacityPerSecond: capacity, maxReportsPerSecond: capacity },
      times: { steadyMs: 2 * hourMs, outageMs: count('outage', 0) * hourMs, afterMs: 2 * hourMs },
    },
    over: values.http ? 'http' : 'virtual time',
    output: values.json ? 'json' : 'text',
  };
}

/** @returns whether they came as a herd */
function simulate(options: VirtualFleetOptions, output: Asked['output']): boolean {
  // Each failure of millions would draw its own.
  Error.stackTraceLimit = 0;
  const report = sampleReport({ number: 1, atMs: 0, everyMs: options.everyMs, serial: 42 });
  const bytes = Buffer.byteLength(JSON.stringify(report));
  const run = summarize(runVirtualFleet(options), options, bytes);
  process.stdout.write(output === 'json' ? `${JSON.stringify(run)}\n` : `${drawRun(run)}\n`);
  return run.herds.length > 0;
}

/** @returns whether a host did not report again */
async function play({ hosts, everyMs }: VirtualFleetOptions): Promise<boolean> {
  const run = await runHttpFleet({ hosts, everyMs, intervals: [3, 2, 7] });
  process.stdout.write(`${JSON.stringify(run)}\n`);
  return run.healed < hosts;
}

const { options, output, over } = asked(process.argv.slice(2));
const isBad = over === 'http' ? await play(options) : simulate(options, output);
process.exitCode = isBad ? 1 : 0;
