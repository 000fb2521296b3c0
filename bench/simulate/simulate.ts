// `npm run simulate -- --hosts 100000`: what a fleet asks of its server in virtual time, on a normal day, in an outage of a day and behind it,
// by the schedule and the retries that hosts run. The same for the same seed. Exit 1 where hosts come as a herd.
import { parseArgs } from 'node:util';
import { sampleReport } from '../fleet/sample-host.js';
import { drawRun, type SimulatedRun, summarize } from './run-report.js';
import { type Fault, runVirtualFleet, type VirtualFleetOptions } from './virtual-fleet.js';

const hourMs = 3_600_000;
const faults: readonly Fault[] = ['none', 'one phase', 'impatient'];

interface Asked {
  readonly options: VirtualFleetOptions;
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
    output: values.json ? 'json' : 'text',
  };
}

const { options, output } = asked(process.argv.slice(2));
// Each failure of millions would draw its own.
Error.stackTraceLimit = 0;
const bytes = Buffer.byteLength(
  JSON.stringify(sampleReport({ number: 1, atMs: 0, everyMs: options.everyMs, serial: 42 })),
);
const run: SimulatedRun = summarize(runVirtualFleet(options), options, bytes);
process.stdout.write(output === 'json' ? `${JSON.stringify(run)}\n` : `${drawRun(run)}\n`);
process.exitCode = run.herds.length > 0 ? 1 : 0;
