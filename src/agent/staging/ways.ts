// By which way a release comes to this host: from what is kept here, by difference from the tree that is active, or as its whole
// archive. Decides, and reads what is kept as far as its names and sizes; what is wrong with a way is found on it.
import { orUndefined } from '../../core/errors.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { deltaToTake } from '../../core/release/kept-delta-rules.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { ActiveBundle } from '../generations/generation-contents.js';
import { isThere, type KeptCopy, readKeptCopy } from '../generations/kept-copies.js';
import { archivePathOf, keptCopyOf, releasePath } from '../generations/release-records.js';
import type { Taken } from '../select/selection.js';
import type { Host } from '../state/host.js';
import { releaseName } from '../state/paths.js';
import type { BaseTree } from './base-files.js';

export type Way =
  | { readonly kind: 'archive' }
  /** The archive of a release before it, and the deltas since, all of them kept here. */
  | { readonly kind: 'kept'; readonly copy: KeptCopy }
  | {
      readonly kind: 'difference';
      readonly delta: DeltaInfo;
      readonly base: BaseTree;
      readonly fromSerial: number;
      /** Of the base: what is kept of the new release goes on from there. */
      readonly kept: KeptCopy;
    };

export interface WayOptions {
  readonly active: ReadonlyMap<string, ActiveBundle>;
  /** `archive`: nothing of this host is believed, as `--force` asks. `kept`: something here is lost. */
  readonly prefer: 'difference' | 'kept' | 'archive';
}

const archive: Way = { kind: 'archive' };

export function wayTo(host: Pick<Host, 'paths'>, { bundle, target }: Taken, options: WayOptions): Way {
  const { active, prefer } = options;
  if (prefer === 'archive') return archive;
  const copy = prefer === 'kept' ? keptByDeltas(host, target) : undefined;
  if (copy !== undefined) return { kind: 'kept', copy };
  const base = active.get(bundle.name);
  return (base && byDifference(host, target, base)) ?? archive;
}

/** Kept as an archive it needs no way of its own: that is the first place where an archive is looked for. */
function keptByDeltas({ paths }: Pick<Host, 'paths'>, target: SignedTarget): KeptCopy | undefined {
  const { bundle, serial, manifest } = target.release;
  const name = releaseName(serial, manifest.digest);
  const { length, digest } = target;
  const file = { path: archivePathOf(paths, bundle, name), length, digest, manifest };
  const own = { target: target.path, archive: file, deltas: [] };
  const copy = orUndefined(() => readKeptCopy(releasePath(paths, bundle, name), own));
  return copy !== undefined && copy.deltas.length > 0 && isThere(copy) ? copy : undefined;
}

function byDifference(
  { paths }: Pick<Host, 'paths'>,
  target: SignedTarget,
  active: ActiveBundle,
): Way | undefined {
  if (target.release.deltas === undefined) return undefined;
  const { entry, record } = active;
  const from = record.release.manifest.digest;
  const place = { bundle: entry.bundle, release: entry.tree.release };
  const kept = orUndefined(() => keptCopyOf(paths, place, record));
  // Without its own second copy the new release could have none either: the archive brings one.
  if (kept === undefined || !isThere(kept)) return undefined;
  const delta = deltaToTake(target.release.deltas, { from, kept, archiveBytes: target.length });
  if (delta === undefined) return undefined;
  const { manifest, manifestBytes } = active;
  const base = { treePath: entry.treePath, manifest, manifestBytes };
  return { kind: 'difference', delta, base, kept, fromSerial: record.release.serial };
}

/** @returns how much of a way is fetched */
export function bytesOfWay(way: Way, target: SignedTarget): number {
  if (way.kind === 'kept') return 0;
  return way.kind === 'difference' ? way.delta.length : target.length;
}
