// Whom a move affects: the one place that says so. Reads the configuration and the ledger; notifies nobody.
import { affectsGroup } from '../../core/release/affected-groups.js';
import { pendingGroups } from '../notify/worker-ledger.js';
import type { Host, WorkerGroup } from '../state/host.js';

export interface Change {
  /** Paths as changedPaths gives them. */
  readonly paths?: readonly string[];
  /** Bundles of which nobody knows what was read: whoever uses one is affected, whatever its `when` says. */
  readonly bundles?: readonly string[];
}

/** @returns the groups that a change affects, and those with a worker behind: it may hold an older generation still */
export function affectedGroups(host: Host, { paths = [], bundles = [] }: Change): WorkerGroup[] {
  const behind = pendingGroups(host.ledger.read());
  return host.groups.filter(({ config }) => affectsGroup(config, paths, bundles) || behind.has(config.name));
}
