// Garbage collection: removes old generations, trees that no generation uses, and releases that no tree uses. The plan
// comes from collection-rules. A collection is bounded in time, because a pull waits for it. The next one removes the rest.
import { join } from 'node:path';
import { isWritError, type WritError } from '../../core/errors.js';
import { findGenerationUsers } from '../../platform/process/find-processes.js';
import type { Host } from '../state/host.js';
import {
  type CollectableGenerations,
  type FindGenerationUsers,
  findCollectableGenerations,
  readCollectionFacts,
} from './collectable.js';
import { planGenerationCollection } from './collection-rules.js';
import { resetFutureTimes } from './generation-notes.js';
import { listGenerations } from './generations.js';

export interface GenerationCollectionOptions {
  /** Creates a directory of this cycle. A removal first renames into it, so that no reader sees a partial tree. */
  readonly staging: () => string;
  /** Finds the processes that use a generation; reads /proc by default. */
  readonly find?: FindGenerationUsers;
}

export interface Collected {
  /** Number of removed directories: generations, trees and releases. */
  readonly removed: number;
  /** True if the time limit ended the collection before everything was removed. */
  readonly hasMore: boolean;
  readonly held: CollectableGenerations['held'];
  /** Epoch milliseconds at which the next grace period ends; left out if none is running. */
  readonly nextDueMs?: number;
}

/**
 * Removes the generations, trees and releases that no rule and no process retains. Without any, it writes nothing.
 * @throws WritError STATE_DAMAGED if the rules cannot be determined from the disk; DISK_* of the first removal that
 *   failed, after all other removals were tried
 */
export async function collectGarbage(host: Host, options: GenerationCollectionOptions): Promise<Collected> {
  const { find = findGenerationUsers } = options;
  const collectable = await findCollectableGenerations(host, find);
  const { plan, held, isComplete } = collectable;
  if (!isComplete)
    host.log.warn({ held }, 'too many processes to know which trees are in use: nothing is removed');
  host.ledger.write(resetFutureTimes(host, listNotDue(host, collectable)));
  const removal = startRemoval(host, options.staging);
  for (const number of plan.generations) {
    const name = String(number);
    removal.remove(join(host.paths.generations, name), `old-generation-${name}`);
  }
  const removed = removal.count();
  if (isComplete) removeUnused(host, collectable, removal);
  removal.end();
  return {
    removed,
    hasMore: removal.ranOut(),
    held,
    ...(plan.nextDueMs === undefined ? {} : { nextDueMs: plan.nextDueMs }),
  };
}

/** Plans again from the generations left on disk, because a generation that could not be removed still needs its trees. */
function removeUnused(host: Host, { rules }: CollectableGenerations, removal: Removal): void {
  const { paths } = host;
  const named = new Set(listGenerations(paths));
  const { trees, releases } = planGenerationCollection(readCollectionFacts(host), { ...rules, named });
  for (const name of trees) removal.remove(join(paths.bundles, name), `old-tree-${name.replace('/', '-')}`);
  for (const name of releases)
    removal.remove(join(paths.archives, name), `old-release-${name.replace('/', '-')}`);
}

function listNotDue(host: Host, { plan, rules }: CollectableGenerations): number[] {
  return listGenerations(host.paths).filter(
    (number) => !rules.named.has(number) && !plan.generations.includes(number),
  );
}

interface Removal {
  /** @param name unique name in the staging directory */
  remove(path: string, name: string): void;
  /** @returns the number of removed directories */
  count(): number;
  /** @returns true if the time limit skipped a removal */
  ranOut(): boolean;
  /** Flushes the removals to disk. @throws WritError the first failed removal */
  end(): void;
}

/** Time limit for the removals of one collection, because the caller of a pull waits for them. */
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
