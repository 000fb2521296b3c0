// `npm run life -- [--hours N] [--seed S] [--plant descriptor|memory] [--only EVENT]`: 48 virtual hours of a host in some
// minutes. Ends with 1 after a violation or a leak, and prints both.
import * as fs from 'node:fs';
import { parseArgs } from 'node:util';
import { type LifeEnd, live } from './life.js';
import { planted } from './planted-leaks.js';

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { hours: text, seed: text, plant: text, only: text } });
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
const hours = Number(values.hours ?? 48);
const leak = values.plant === undefined ? undefined : planted[values.plant as keyof typeof planted]();

process.stdout.write(`seed ${seed}, ${hours} virtual hours\n`);
const end = await live({
  ...{ seed, hours, only: values.only ?? '' },
  ...(leak === undefined ? {} : { leak: leak.act }),
  onHour: (hour, measured, { story }) => {
    const shown = Object.entries(measured).map(([name, value]) => `${name} ${value}`);
    const violations = story.violations.length;
    process.stdout.write(`${hour + 1} h: ${shown.join(', ')}, violations ${violations}\n`);
  },
});
process.stdout.write(reportOf(end));
process.exitCode = end.violations.length + end.leaks.length === 0 ? 0 : 1;
leak?.end();

function reportOf({ counts, growth, leaks, violations, seconds }: LifeEnd): string {
  const lines = [
    ...[...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => `  ${name.padEnd(50)} ${count}`),
    ...growth.map(({ meter, before, after }) => `  ${meter.padEnd(20)} ${before} in the 2nd quarter, ${after} in the last`),
    `  processor ${Math.round(fs.readFileSync('/proc/self/schedstat', 'utf8').split(' ').map(Number)[0]! / 1e9)} s of ${Math.round(seconds)} s`,
    ...leaks.map(({ meter, before, after }) => `LEAK ${meter}: ${before} -> ${after}`),
    ...violations.slice(0, 20).map((one) => `VIOLATION ${one}`),
    `${violations.length} violations, ${leaks.length} leaks`,
  ];
  return `${lines.join('\n')}\n`;
}
