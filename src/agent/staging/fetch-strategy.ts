// Chooses the fetch strategy of a release: from its retained copy, by a delta from the active tree, or as its archive. Reads only
// names and sizes of retained files, because a damaged file is found when the strategy runs.
import { orUndefined } from '../../core/errors.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { deltaToTake } from '../../core/release/kept-delta-rules.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { ActiveBundle } from '../generations/generation-contents.js';
import { isCopyPresent, type KeptCopy, readKeptCopy } from '../generations/kept-copies.js';
import { archivePathOf, keptCopyOf, releasePath } from '../generations/release-records.js';
import type { Taken } from '../select/selection.js';
import type { Host } from '../state/host.js';
import { releaseDirectoryName } from '../state/paths.js';
import type { BaseTree } from './base-files.js';

export type FetchStrategy =
  | { readonly kind: 'archive' }
  /** The archive of an older release and the deltas since, all of them retained on this host. */
  | { readonly kind: 'retained'; readonly copy: KeptCopy }
  | {
      readonly kind: 'delta';
      readonly delta: DeltaInfo;
      readonly base: BaseTree;
      readonly fromSerial: number;
      /** The retained copy of the base: the copy of the new release is this one and the delta. */
      readonly baseCopy: KeptCopy;
    };

export interface FetchStrategyOptions {
  readonly active: ReadonlyMap<string, ActiveBundle>;
  /** `archive`: no file of this host is used, as `--force` requires. `retained`: a file of this host is lost. */
  readonly prefer: 'delta' | 'retained' | 'archive';
}

const archiveStrategy: FetchStrategy = { kind: 'archive' };

/** @returns the preferred strategy if this host has its files, otherwise the next of: retained copy, delta, archive */
export function chooseFetchStrategy(
  host: Pick<Host, 'paths'>,
  { bundle, target }: Taken,
  options: FetchStrategyOptions,
): FetchStrategy {
  const { active, prefer } = options;
  if (prefer === 'archive') return archiveStrategy;
  const copy = prefer === 'retained' ? findRetainedDeltas(host, target) : undefined;
  if (copy !== undefined) return { kind: 'retained', copy };
  const base = active.get(bundle.name);
  return (base && findDelta(host, target, base)) ?? archiveStrategy;
}

/** Ignores a retained archive without deltas, because preferRetainedArchives uses it for the archive strategy. */
function findRetainedDeltas({ paths }: Pick<Host, 'paths'>, target: SignedTarget): KeptCopy | undefined {
  const { bundle, serial, manifest } = target.release;
  const name = releaseDirectoryName(serial, manifest.digest);
  const { length, digest } = target;
  const file = { path: archivePathOf(paths, bundle, name), length, digest, manifest };
  const own = { target: target.path, archive: file, deltas: [] };
  const copy = orUndefined(() => readKeptCopy(releasePath(paths, bundle, name), own));
  return copy !== undefined && copy.deltas.length > 0 && isCopyPresent(copy) ? copy : undefined;
}

function findDelta(
  { paths }: Pick<Host, 'paths'>,
  target: SignedTarget,
  active: ActiveBundle,
): FetchStrategy | undefined {
  if (target.release.deltas === undefined) return undefined;
  const { entry, record } = active;
  const from = record.release.manifest.digest;
  const place = { bundle: entry.bundle, release: entry.tree.release };
  const baseCopy = orUndefined(() => keptCopyOf(paths, place, record));
  // Without a retained copy of the base the new release would have none either; its archive is one.
  if (baseCopy === undefined || !isCopyPresent(baseCopy)) return undefined;
  const delta = deltaToTake(target.release.deltas, { from, kept: baseCopy, archiveBytes: target.length });
  if (delta === undefined) return undefined;
  const { manifest, manifestBytes } = active;
  const base = { treePath: entry.treePath, manifest, manifestBytes };
  return { kind: 'delta', delta, base, baseCopy, fromSerial: record.release.serial };
}

/** @returns the number of bytes that the strategy fetches */
export function countBytesToFetch(strategy: FetchStrategy, target: SignedTarget): number {
  if (strategy.kind === 'retained') return 0;
  return strategy.kind === 'delta' ? strategy.delta.length : target.length;
}
