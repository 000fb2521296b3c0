// Compares a release with the head of its channel before anything is signed: the size of the change, and whether it is
// within the publisher's bounds. Reads manifests from archives of this repository; writes nothing.
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { targetPath } from '../../core/names.js';
import {
  type ChangeBounds,
  type ChangeExcess,
  excessOfChange,
  measureChange,
  type TreeChange,
} from '../../core/release/change-rules.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { unstamped } from '../../core/release/stamps.js';
import { readManifestOf } from '../archive/archive-reader.js';
import { findHead, type ListedRelease, liveReleasesOf } from '../repository/listing.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { releaseHistory } from './release-history.js';

export interface BoundedChange extends ChangeBounds {
  /** The action for a change beyond the bounds. */
  readonly beyond: 'refuse' | 'accept';
}

export interface ChannelHead {
  readonly listed: ListedRelease;
  /** The manifest in the archive; absent where it cannot be read. The size of the change is unknown then. */
  readonly manifest?: Manifest;
}

export interface HeadChange {
  /** Absent for the first release of a channel. */
  readonly head?: ChannelHead;
  readonly change?: TreeChange;
  /** The exceeded bounds that were accepted. */
  readonly accepted: readonly ChangeExcess[];
  /**
   * The serial of the release before the corrected one. The change to it is within the bounds, and the change to the head
   * is not.
   */
  readonly withinBoundsOf?: number;
}

export interface Channel {
  readonly bundle: string;
  readonly channel: string;
}

/**
 * @param known a head that was read before; its manifest is not read again
 * @param state the head that hosts see is compared; without one, the waiting head
 * @returns undefined for the first release of a channel
 */
export async function readHead(
  state: RepositoryState,
  { bundle, channel }: Channel,
  { limits, known }: { readonly limits: ArchiveLimits; readonly known?: ChannelHead | undefined },
): Promise<ChannelHead | undefined> {
  const path = targetPath(bundle, channel);
  const live = liveReleasesOf(state).find((entry) => entry.path === path);
  const listed = live ?? findHead(state, bundle, channel);
  if (listed === undefined) return undefined;
  const isKnown = known?.listed.release.manifest.digest === listed.release.manifest.digest;
  const manifest = isKnown ? known?.manifest : (await readManifestOf(state.layout, listed, limits))?.manifest;
  return { listed, ...given({ manifest }) };
}

/**
 * Measures how much a tree changes against the head of its channel. Writes nothing.
 * @param after the tree before its stamps were filled in, because a new serial is not a change
 * @param bounds undefined: no bounds
 * @returns `change` with the difference; `accepted` with the bounds that it exceeds, empty within them. Without a head, or with
 *   a head without a readable manifest, `change` is absent and `accepted` is empty
 * @throws WritError CHANGE_TOO_LARGE if the change exceeds bounds with `beyond: 'refuse'`; the facts name all of them
 */
export function compareToHead(
  head: ChannelHead | undefined,
  after: Manifest,
  bounds: BoundedChange | undefined,
): HeadChange {
  if (head?.manifest === undefined) return { ...given({ head }), accepted: [] };
  const { release } = head.listed;
  const change = measureChange(unstamped(head.manifest, release.stamped?.stamps), after);
  const excess = bounds === undefined ? [] : excessOfChange(change, bounds);
  if (bounds?.beyond === 'refuse' && excess.length > 0) throw changeTooLarge(release, change, excess);
  return { head, change, accepted: excess };
}

interface Comparison {
  readonly head: ChannelHead | undefined;
  readonly after: Manifest;
  readonly bounds: BoundedChange | undefined;
  readonly limits: ArchiveLimits;
}

/**
 * Like compareToHead, but a correction may be within the bounds of the release before the fault instead. A list that
 * doubled by accident, for example, loses half of its bytes when it is corrected.
 * @throws WritError CHANGE_TOO_LARGE
 */
export async function compareToHeads(
  state: RepositoryState,
  { fixes, ...channel }: Channel & { readonly fixes?: number | undefined },
  { head, after, bounds, limits }: Comparison,
): Promise<HeadChange> {
  const compared = compareToHead(head, after, bounds && { ...bounds, beyond: 'accept' });
  if (bounds === undefined || compared.accepted.length === 0) return compared;
  const listed = fixes === undefined ? undefined : releaseBefore(state, channel, fixes);
  const manifest = listed && (await readManifestOf(state.layout, listed, limits))?.manifest;
  if (listed !== undefined && manifest !== undefined) {
    const before = compareToHead({ listed, manifest }, after, { ...bounds, beyond: 'accept' });
    if (before.accepted.length === 0)
      return { ...compared, accepted: [], withinBoundsOf: listed.release.serial };
  }
  return compareToHead(head, after, bounds);
}

/**
 * @returns the newest release of the channel before the faulty one that was not withdrawn. For the correction of a
 *   correction, the faulty one is the release that the first correction corrected
 */
function releaseBefore(
  state: RepositoryState,
  { bundle, channel }: Channel,
  fixes: number,
): ListedRelease | undefined {
  const history = releaseHistory(state, bundle);
  const withdrawn = new Set(history.flatMap(({ release }) => release.withdrawn));
  let fault = fixes;
  // One pass follows the chain of corrections, because the history begins with the newest and each corrects an older
  // release.
  for (const { release } of history) if (release.serial === fault) fault = release.fixes ?? fault;
  return history.find(
    ({ release }) => release.channel === channel && release.serial < fault && !withdrawn.has(release.serial),
  );
}

function changeTooLarge(
  { bundle, channel, serial }: ReleaseInfo,
  { before, after, difference }: TreeChange,
  excess: readonly ChangeExcess[],
): WritError {
  const { added, removed, changed } = difference;
  const actual = excess.map((one) => one.actual).join('; ');
  const expected = excess.map((one) => one.expected).join('; ');
  return new WritError(
    'CHANGE_TOO_LARGE',
    `${bundle} ${channel}: too much of serial ${serial} would change`,
    {
      facts: {
        ...{ bundle, channel, serial, expected, actual },
        rules: excess.map(({ rule }) => rule),
        ...{ before, after },
        difference: { added: added.length, removed: removed.length, changed: changed.length },
      },
    },
  );
}
