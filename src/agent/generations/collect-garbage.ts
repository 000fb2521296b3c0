// Removes what nobody needs any more: old generations, trees that none of them has, and the releases of those. What is
// kept is the verdict of core/collection. Ends early rather than late: what is left is due again.
import { join } from 'node:path';
import { isWritError, type WritError } from '../../core/errors.js';
import { findHolders } from '../../platform/process/find-processes.js';
import type { Host } from '../state/host.js';
import { type Collectable, type FindHolders, lookForCollectable, readFacts } from './collectable.js';
import { planCollection } from './collection-rules.js';
import { withoutFuture } from './generation-notes.js';
import { listGenerations } from './generations.js';

export interface CollectOptions {
  /** Makes a directory of this cycle: deletion begins by renaming into it, so that nobody meets half a tree. */
  readonly staging: () => string;
  /** Who holds what; /proc says by default. */
  readonly find?: FindHolders;
}

export interface Collected {
  /** How many generations were removed. */
  readonly removed: number;
  /** `yes`: its time was over before all was removed. */
  readonly more: 'yes' | 'no';
  readonly held: Collectable['held'];
  /** Epoch milliseconds: when there may be more to remove, as far as that is a matter of time. */
  readonly nextDueMs?: number;
}

/**
 * Collects. Writes nothing when there is nothing to remove.
 * @throws WritError STATE_DAMAGED when the rules cannot be made out, DISK_* of the first removal that failed, when the
 *   others have been tried
 */
export async function collectGarbage(host: Host, options: CollectOptions): Promise<Collected> {
  const { find = findHolders } = options;
  const look = await lookForCollectable(host, find);
  const { plan, held, complete } = look;
  if (complete === 'no')
    host.log.warn({ held }, 'too many processes to know which trees are in use: nothing is removed');
  host.ledger.write(withoutFuture(host, notYetDue(host, look)));
  const removal = startRemoval(host, options.staging);
  for (const number of plan.generations) {
    const name = String(number);
    removal.remove(join(host.paths.generations, name), `old-generation-${name}`);
  }
  const removed = removal.count();
  if (complete === 'yes') removeUnused(host, look, removal);
  removal.end();
  const more = removal.ranOut() ? 'yes' : 'no';
  return { removed, more, held, ...(plan.nextDueMs === undefined ? {} : { nextDueMs: plan.nextDueMs }) };
}

/** With what is left on disk: a generation that could not be removed keeps its trees. */
function removeUnused(host: Host, { rules }: Collectable, removal: Removal): void {
  const { paths } = host;
  const named = new Set(listGenerations(paths));
  const { trees, releases } = planCollection(readFacts(host), { ...rules, named });
  for (const name of trees) removal.remove(join(paths.bundles, name), `old-tree-${name.replace('/', '-')}`);
  for (const name of releases)
    removal.remove(join(paths.archives, name), `old-release-${name.replace('/', '-')}`);
}

function notYetDue(host: Host, { plan, rules }: Collectable): number[] {
  return listGenerations(host.paths).filter(
    (number) => !rules.named.has(number) && !plan.generations.includes(number),
  );
}

interface Removal {
  /** @param name in staging */
  remove(path: string, name: string): void;
  /** How many were removed so far. */
  count(): number;
  ranOut(): boolean;
  /** @throws WritError the first failure */
  end(): void;
}

/** Of the removals of one collection: who waits for a pull waits for them too. */
const maxRemoveMs = 2000;

function startRemoval({ durable, paths, clock }: Host, staging: () => string): Removal {
  const deadlineMs = clock.monotonicMs() + maxRemoveMs;
  let count = 0;
  let ranOut = false;
  let first: WritError | undefined;
  return {
    remove: (path, name) => {
      ranOut ||= clock.monotonicMs() >= deadlineMs;
      if (ranOut) return;
      try {
        const to = join(staging(), name);
        durable.rename('commit.collect', path, to);
        durable.removeTree('commit.collect-remove', to);
        count += 1;
      } catch (error) {
        if (!isWritError(error)) throw error;
        first ??= error;
      }
    },
    count: () => count,
    ranOut: () => ranOut,
    end: () => {
      if (first !== undefined) throw first;
      if (count > 0) durable.flushDirectory('commit.collect-flush', paths.generations);
    },
  };
}
