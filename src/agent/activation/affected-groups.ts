// Decides which worker groups a move affects. All moves use this function. Reads the configuration and the ledger.
import { affectsGroup } from '../../core/release/affected-groups.js';
import { pendingGroups } from '../notify/worker-ledger.js';
import type { Host, WorkerGroup } from '../state/host.js';

export interface MoveDifference {
  /** Changed paths, as changedPaths returns them. */
  readonly paths?: readonly string[];
  /** Bundles with an unknown difference: every group that uses one is affected, without regard to its `when`. */
  readonly bundles?: readonly string[];
}

/** @returns the groups that a difference affects, and those with a pending worker, which may still use an older generation */
export function affectedGroups(host: Host, { paths = [], bundles = [] }: MoveDifference): WorkerGroup[] {
  const behind = pendingGroups(host.ledger.read());
  return host.groups.filter(({ config }) => affectsGroup(config, paths, bundles) || behind.has(config.name));
}
