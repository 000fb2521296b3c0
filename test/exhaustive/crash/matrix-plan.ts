// Selects the cases of the crash matrix: all of them, or a sample in which every label has every kind of fault once. Runs
// provide the moments.
import type { Seeded } from '../../kit/assert/seeded.js';
import type { MatrixCase } from './matrix-case.js';
import { type Errno, errnos, type Fault, faults, type Moment } from './matrix-faults.js';

/** The number of second kills in starts after a kill, for each cycle of the complete matrix. */
const secondKills = 40;
/** The approximate number of operations of a start and the cycle after it. */
const operationsOfARun = 60;

/** @returns every fault at every moment, and a sample of kills in starts after a kill */
export function completePlan(moments: readonly Moment[], random: Seeded): MatrixCase[] {
  const all = moments.flatMap((moment) => faults.map((fault) => ({ ...moment, fault })));
  return [...all, ...sampleOfSecondKills(moments, secondKills, random)];
}

export function sampleOfSecondKills(moments: readonly Moment[], count: number, random: Seeded): MatrixCase[] {
  return Array.from({ length: count }, () => ({
    ...random.pick(moments),
    fault: { kind: 'killed', when: random.pick(['before', 'after']) },
    secondKillAt: 1 + random.int(operationsOfARun),
  }));
}

/** @returns each kind of fault once, with the error number chosen by the index */
function kindsFor(index: number): Fault[] {
  const errno = (at: number): Errno => errnos[at % errnos.length] ?? 'EIO';
  return [
    ...faults.filter(({ kind }) => kind === 'killed'),
    { kind: 'fails', errno: errno(index), how: 'once' },
    { kind: 'fails', errno: errno(index + 1), how: 'for good' },
  ];
}

/**
 * @param cycles moments by the name of the cycle
 * @returns cases by the name of the cycle; every label has every kind of fault, at a moment that the seed chooses
 */
export function samplePlan(
  cycles: ReadonlyMap<string, readonly Moment[]>,
  random: Seeded,
): Map<string, MatrixCase[]> {
  const byLabel = new Map<string, { cycle: string; moment: Moment }[]>();
  for (const [cycle, moments] of cycles) {
    for (const moment of moments) {
      byLabel.set(moment.label, [...(byLabel.get(moment.label) ?? []), { cycle, moment }]);
    }
  }
  const plan = new Map<string, MatrixCase[]>([...cycles.keys()].map((name) => [name, []]));
  for (const [index, places] of [...byLabel.values()].entries()) {
    for (const fault of kindsFor(index)) {
      const { cycle, moment } = random.pick(places);
      plan.get(cycle)?.push({ ...moment, fault });
    }
  }
  for (const [name, moments] of cycles) plan.get(name)?.push(...sampleOfSecondKills(moments, 1, random));
  return plan;
}
