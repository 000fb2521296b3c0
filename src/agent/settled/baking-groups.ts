// The worker groups that use a bundle, as the rules of the bake time read them. Reads configuration and ledger.
import type { AgentConfig } from '../../core/config/config.js';
import type { Ledger } from '../state/ledger.js';
import type { BakingGroup } from './evidence-rules.js';

export interface BakingGroupFacts {
  readonly config: Pick<AgentConfig, 'workers'>;
  readonly ledger: Pick<Ledger, 'workers' | 'runs'>;
  /** Whether a look found the worker dead, by its key `group/worker`; left out where no look was made. */
  readonly isDead?: (key: string) => boolean;
}

export function bakingGroups(
  bundle: string,
  { config, ledger, isDead = () => false }: BakingGroupFacts,
): BakingGroup[] {
  const using = config.workers.filter((one) => one.uses.includes(bundle));
  return using.map(({ name, reset }): BakingGroup => {
    const workers = Object.entries(ledger.workers).filter(([key]) => key.startsWith(`${name}/`));
    return {
      group: name,
      min: reset?.min ?? 0,
      workers: workers.map(([key, entry]) => {
        return { key, entry, runs: ledger.runs?.[key], isDead: isDead(key) };
      }),
    };
  });
}

/** @returns true where a worker group that uses the bundle has a probe */
export function hasProbe({ workers }: Pick<AgentConfig, 'workers'>, bundle: string): boolean {
  return workers.some(({ uses, probe }) => probe !== undefined && uses.includes(bundle));
}
