// `npm run crash:kills` kills a real process at every call that changes the disk, and fails each such call once. Prints the
// number of tries and their verdicts; exits with 1 after a violation. Arguments: part of a case's name; `kills`, `errors` or
// `all`; and the stride between tried errors (1: each).

import { inParallel } from '../crash/in-parallel.js';
import { enumerate, errorsOf, killsOf, type Strike, tryStrike, type Verdict } from './kill-runs.js';
import { type KillCase, killCases, openScene } from './kill-scenes.js';

/** Parallel processes, which mostly wait. */
const width = 3;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function report(title: string, verdicts: readonly Verdict[]): void {
  const count = (kind: Verdict['kind'], among = verdicts): number =>
    among.filter((one) => one.kind === kind).length;
  const sum = `${count('held')} held, ${count('violated')} violations`;
  const rest = `${count('elsewhere')} struck another call and held, ${count('not-reached')} not reached`;
  print(`  ${title}: ${verdicts.length} tried, ${sum}, ${rest}`);
  const calls = [...new Set(verdicts.map(({ strike }) => `${strike.site.call} ${strike.with}`))];
  const perCall = calls.map((name) => {
    const among = verdicts.filter(({ strike }) => `${strike.site.call} ${strike.with}` === name);
    return `${name.replace(' kill', '')} ${count('held', among)}/${among.length}`;
  });
  print(`    ${perCall.join(', ')}`);
  for (const { strike, kind, message = '' } of verdicts)
    if (kind !== 'held') print(`    ${kind}: ${strike.with} at ${strike.site.what}\n      ${message}`);
}

interface Wanted {
  readonly name: string;
  readonly what: string;
  readonly stride: number;
}

async function reportCase(one: KillCase, { what, stride }: Wanted): Promise<number> {
  using scene = await openScene(one);
  const found = await enumerate(scene);
  const errors = one.by === 'agent' ? [] : errorsOf(scene, found).filter((_, at) => at % stride === 0);
  const groups: [string, Strike[]][] = [
    ['killed', what === 'errors' ? [] : killsOf(scene, found)],
    ['failed', what === 'kills' ? [] : errors],
  ];
  print(`${one.name}: ${found.sites.length} calls change the disk`);
  let violations = 0;
  for (const [title, strikes] of groups.filter(([, all]) => all.length > 0)) {
    const verdicts = await inParallel(strikes, width, tryStrike);
    report(title, verdicts);
    violations += verdicts.filter(({ kind }) => kind === 'violated').length;
  }
  return violations;
}

async function main(wanted: Wanted): Promise<number> {
  let violations = 0;
  for (const one of killCases.filter(({ name }) => name.includes(wanted.name)))
    violations += await reportCase(one, wanted);
  return violations;
}

const [, , name = '', what = 'all', stride = '1'] = process.argv;
process.exitCode = (await main({ name, what, stride: Number(stride) })) === 0 ? 0 : 1;
