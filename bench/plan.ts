// The parts of a benchmark: by default the comparison on policy-10k, `--short` the same on policy-small, `--full` growth too.
// `--rest` measures idle processes for this many minutes, without a comparison; `--fleet` the fleet server alone.
import { parseArgs } from 'node:util';
import type { FleetSize } from './fleet/fleet-figures.js';
import { policy10k, policySmall, type TreeSize } from './policy-tree.js';

export interface Plan {
  readonly command: string;
  readonly treeName: string;
  readonly tree: TreeSize;
  readonly rounds: number;
  /** How long the polls of one agent are watched. */
  readonly pollSeconds: number;
  /** That the servers answer in each round. */
  readonly polls: number;
  /** Measures only idle processes, for this time, and the cost of `writ status` meanwhile; by default the comparison. */
  readonly restMinutes: number | undefined;
  /** Of the fleet server's figures. */
  readonly fleet: FleetSize;
  /** Nothing else is measured. */
  readonly only: 'fleet' | undefined;
  readonly growth: 'measured' | 'left out';
  /** Into docs/performance.md. */
  readonly document: 'written' | 'left alone';
  readonly output: 'text' | 'json';
}

const fewHosts: FleetSize = { hosts: 2000, keyed: 300, rounds: 3 };
const manyHosts: FleetSize = { hosts: 100_000, keyed: 1000, rounds: 12 };

/** @throws Error for a flag that there is not */
export function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      fleet: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      'no-document': { type: 'boolean', default: false },
      rounds: { type: 'string' },
      rest: { type: 'string' },
    },
  });
  if (values.short && values.full) throw new Error('--short or --full, not both');
  if (values.rest && values.full) throw new Error('--rest or --full, not both');
  const restMinutes = values.rest === undefined ? undefined : Number(values.rest);
  if (restMinutes !== undefined && !(restMinutes > 0)) throw new Error('--rest takes minutes above 0');
  if (values.fleet && (values.full || values.rest)) throw new Error('--fleet with --short, or alone');
  const isDocumentLeft = values['no-document'];
  const rounds = Number(values.rounds ?? (values.short ? 2 : 5));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a number from 1 on');
  const size = values.short
    ? { treeName: 'policy-small', tree: policySmall, pollSeconds: 3, polls: 4000, fleet: fewHosts }
    : { treeName: 'policy-10k', tree: policy10k, pollSeconds: 20, polls: 10_000, fleet: manyHosts };
  return {
    ...size,
    rounds,
    restMinutes,
    command: ['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' '),
    only: values.fleet ? 'fleet' : undefined,
    growth: values.full ? 'measured' : 'left out',
    document:
      isDocumentLeft || values.short || values.fleet || restMinutes !== undefined ? 'left alone' : 'written',
    output: values.json ? 'json' : 'text',
  };
}
