// `npm run crash:replay` tries every state of every cycle in both file systems, and removes every flush in turn. Prints the
// numbers of recorded operations, tried states and violations. Exits with 1 when a state breaks the invariant, or a flush does
// not match its rule. An argument is part of a cycle's name.
import { seeded, testSeed } from '../../kit/assert/seeded.js';
import { allCycles } from '../crash/all-cycles.js';
import { agrees, flushesOf, judgeFlush, knownStates, verdictOf } from './flush-removal.js';
import { type RecordedCycle, recordCycle } from './record-cycle.js';
import { type ReplayOptions, replay } from './replay-states.js';

/** The number of random subsets of losable changes, for each moment. */
const subsets = 12;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function reportStates(cycle: RecordedCycle, options: Omit<ReplayOptions, 'profiles'>): Promise<number> {
  let violations = 0;
  for (const profile of ['posix', 'ext4'] as const) {
    const result = await replay(cycle, { ...options, profiles: [profile] });
    violations += result.violations.length;
    print(`  ${profile}: ${result.tried} states tried, ${result.violations.length} violations`);
    for (const { state, message } of result.violations) print(`    ${state}\n      ${message}`);
  }
  return violations;
}

async function reportFlushes(cycle: RecordedCycle): Promise<number> {
  const common = { random: seeded(testSeed()), subsets: 1, alike: 'swept' } as const;
  const known = knownStates(cycle, { ...common, subsets: 6 });
  let wrong = 0;
  let needed = 0;
  const flushes = flushesOf(cycle.recording);
  for (const flush of flushes) {
    const { violation, tried } = await judgeFlush(cycle, flush, { ...common, known });
    const rule = verdictOf(flush);
    const isNeeded = violation !== undefined;
    const isAsHeld = agrees(rule, cycle.name, isNeeded);
    if (isNeeded) needed += 1;
    if (!isAsHeld) wrong += 1;
    print(
      `    ${isNeeded ? 'needed' : 'spare '} ${flush.name}${isAsHeld ? '' : ` (held to be ${rule.kind})`}: ` +
        (isNeeded ? violation.message.split('\n')[0]?.slice(0, 120) : `${rule.why} (${tried} states)`),
    );
  }
  print(`  flushes: ${needed} of ${flushes.length} needed`);
  return wrong;
}

async function main(wanted: string): Promise<number> {
  let wrong = 0;
  for (const cycle of allCycles.filter(({ name }) => name.includes(wanted))) {
    using recorded = await recordCycle(cycle);
    print(`${cycle.name}: ${recorded.operations} operations recorded`);
    wrong += await reportStates(recorded, { random: seeded(testSeed()), subsets, alike: 'exact' });
    wrong += await reportFlushes(recorded);
  }
  return wrong;
}

process.exitCode = (await main(process.argv[2] ?? '')) === 0 ? 0 : 1;
