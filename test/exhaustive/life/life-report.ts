// `npm run life -- [--hours N] [--seed S] [--plant descriptor|memory] [--only EVENT]` simulates 48 virtual hours of a host in
// some minutes. SIGINT stops it at the end of an hour. Exits with 1 after a violation or a leak, and prints both.
import { parseArgs } from 'node:util';
import { searchSeed } from '../../kit/assert/seeded.js';
import { type Plant, planted } from './planted-leaks.js';
import { type SimulationResult, simulateHost } from './simulate-host.js';

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { hours: text, seed: text, plant: text, only: text } });
const seed = Number(values.seed ?? searchSeed());
const hours = Number(values.hours ?? 48);
const leak = values.plant === undefined ? undefined : planted[values.plant as Plant]();

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
let printed = 0;
process.stdout.write(`seed ${seed}, ${hours} virtual hours\n`);
const end = await simulateHost({
  ...{ seed, hours, only: values.only ?? '', stop: stop.signal },
  ...(leak === undefined ? {} : { leak: leak.act }),
  onHour: (hour, measured, { log }) => {
    const shown = Object.entries(measured).map(([name, value]) => `${name} ${value}`);
    const violations = log.violations.length;
    process.stdout.write(`${hour + 1} h: ${shown.join(', ')}, violations ${violations}\n`);
    for (const one of log.violations.slice(printed)) process.stdout.write(`VIOLATION ${one}\n`);
    printed = violations;
  },
});
process.stdout.write(reportOf(end));
process.exitCode = end.violations.length + end.leaks.length === 0 ? 0 : 1;
leak?.end();

function reportOf({ counts, growth, leaks, violations, seconds }: SimulationResult): string {
  const { user, system } = process.cpuUsage();
  const cpuSeconds = Math.round((user + system) / 1_000_000);
  const lines = [
    ...[...counts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => `  ${name.padEnd(50)} ${count}`),
    ...growth.map(
      ({ meter, quarters }) =>
        `  ${meter.padEnd(20)} medians of the last three quarters: ${quarters.join(', ')}`,
    ),
    `  ${cpuSeconds} s of a processor in ${Math.round(seconds)} s`,
    ...leaks.map(({ meter, quarters }) => `LEAK ${meter}: ${quarters.join(' -> ')}`),
    ...violations.slice(printed).map((one) => `VIOLATION ${one}`),
    `${violations.length} violations, ${leaks.length} leaks`,
  ];
  return `${lines.join('\n')}\n`;
}
