// How often the probe of a group is asked between activations: in a bake time more often than configured. Pure.
import { type AgentConfig, bakeOf, type WorkerGroupConfig } from '../../core/config/config.js';
import type { Ledger } from '../state/ledger.js';

/** In a bake time a probe is asked so often at least, and never more often than each second. */
const probesInBake = 10;
const leastBakingGapMs = 1000;

/** @returns milliseconds between two questions to the probe of a group; undefined where it is asked in activations alone */
export function probeGapMs(
  config: Pick<AgentConfig, 'bundles' | 'together'>,
  ledger: Pick<Ledger, 'bakes'>,
  group: Pick<WorkerGroupConfig, 'uses'>,
  usualMs: number | undefined,
): number | undefined {
  const baking = bakingBundles(ledger, group);
  if (baking.length === 0) return usualMs;
  const shares = baking.map((bundle) => bakeOf(config, bundle).forMs / probesInBake);
  const bakingMs = Math.max(leastBakingGapMs, Math.round(Math.min(...shares)));
  return Math.min(usualMs ?? bakingMs, bakingMs);
}

/** @returns the bundles of a group that have a release in its bake time */
export function bakingBundles(
  { bakes = {} }: Pick<Ledger, 'bakes'>,
  { uses }: Pick<WorkerGroupConfig, 'uses'>,
): string[] {
  return uses.filter((bundle) => bakes[bundle] !== undefined);
}
