// `writ promote`: the head of one channel becomes the head of another, with the same archive and the same serial. Refuses a
// release that hosts of the other channel would refuse.
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { defaultArchiveLimits } from '../../core/limits.js';
import type { Digest } from '../../core/names.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { unstamped } from '../../core/release/stamps.js';
import { readManifestOf } from '../archive/archive-reader.js';
import { findHead, type ListedRelease, unionOf } from '../repository/listing.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { readStateBeforeLock } from '../signing/sign-change.js';
import { changeTargets, type TargetsChange, type TargetsResult } from './change-targets.js';
import {
  type BoundedChange,
  type ChannelHead,
  compareToHeads,
  type HeadChange,
  readHead,
} from './head-change.js';
import type { MoveOptions } from './moved-deltas.js';
import { moveTo, requireArchive, requireNotWithdrawn } from './withdraw.js';

interface PromoteRequest {
  readonly bundle: string;
  /** The channel that offers the release to promote. */
  readonly from: string;
  readonly to: string;
  /** The serial that hosts were asked about; another head of `from` is refused. By default any head is promoted. */
  readonly serial?: number | undefined;
}

export interface PromoteOptions extends MoveOptions {
  /** Bounds on the change compared with the head of the channel; by default none. */
  readonly change?: BoundedChange | undefined;
  /**
   * Receives the promotion before a key is opened. An error that it throws ends the promotion. After it, no other head of
   * `from` is promoted.
   */
  readonly approve?: (promotion: Promotion) => Promise<void>;
}

/** Manifests that an earlier plan read from archives, so that each archive is read once. */
interface ReadManifests {
  head?: ChannelHead | undefined;
  source?: { readonly digest: Digest; readonly manifest: Manifest } | undefined;
}

export interface Promotion extends Pick<HeadChange, 'change' | 'accepted' | 'withinBoundsOf'> {
  /** The previous head of the channel; absent for its first release. */
  readonly before?: ReleaseInfo;
  readonly after: ReleaseInfo;
}

export type PromoteResult = TargetsResult<Promotion>;

/**
 * Makes the head of the channel `from` also the head of the channel `to`, and publishes it.
 * @returns `nothing-new` if `to` has this serial already and no file waited; nothing was written. `live`: hosts see the change.
 *   `waiting`: the online keys in `missing` must still sign. `info` has the previous and the new head of `to`
 * @throws WritError RELEASE_UNKNOWN if `from` lists no release of the bundle, RELEASE_NOT_SETTLED if its head is not the
 *   requested serial, RELEASE_REFUSED if `to` has a later serial, RELEASE_UNAVAILABLE without the archive, CHANGE_TOO_LARGE,
 *   USAGE if both channels are the same; errors of `approve`; KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, CLOCK_UNSURE,
 *   REPOSITORY_LOCKED, REPOSITORY_INVALID, SIGNATURE_DISAGREEMENT, DISK_*
 */
export function promoteRelease(request: PromoteRequest, options: PromoteOptions): Promise<PromoteResult> {
  const { approve } = options;
  const read: ReadManifests = {};
  let approved: number | undefined;
  return changeTargets(options, async (state) => {
    const serial = approved ?? request.serial;
    const planned = await planPromotion(state, { ...request, serial }, { ...options, read });
    if (approve === undefined || planned === undefined || approved !== undefined) return planned;
    const promotion = planned.createInfo([]);
    await approve(promotion);
    approved = promotion.after.serial;
    return planned;
  });
}

/** @returns the promotion that promoteRelease would do; undefined without a change. @throws as promoteRelease */
export async function previewPromotion(
  request: PromoteRequest,
  options: PromoteOptions,
): Promise<Promotion | undefined> {
  return (await planPromotion(readStateBeforeLock(options), request, { ...options, read: {} }))?.createInfo(
    [],
  );
}

interface PlanOptions extends PromoteOptions {
  readonly read: ReadManifests;
}

async function planPromotion(
  state: RepositoryState,
  request: PromoteRequest,
  options: PlanOptions,
): Promise<TargetsChange<Promotion> | undefined> {
  const { bundle, from, to } = request;
  if (from === to) {
    throw new WritError('USAGE', '--from and --to are the same channel', { facts: { channel: from } });
  }
  const source = findHead(state, bundle, from);
  if (source === undefined) {
    throw new WritError('RELEASE_UNKNOWN', `the repository lists no ${bundle} on ${from}`, {
      facts: { bundle, channel: from },
    });
  }
  requireAsked(source.release, request);
  const before = findHead(state, bundle, to)?.release;
  if (before?.serial === source.release.serial) return undefined;
  requireAcceptable(state, source, before);
  requireArchive(state.layout, source);
  const { change, accepted, withinBoundsOf } = await compareToTarget(state, source, request, options);
  // The union of both lists, because a host may have accepted a withdrawn release on either channel.
  const withdrawn = unionOf(source.release.withdrawn, before?.withdrawn);
  const moved = moveTo(state.layout, source, to);
  const { withdrawal: _ofTheOtherChannel, ...release } = moved.release;
  const after: ReleaseInfo = { ...release, withdrawn };
  return {
    moves: [{ from: source, release: after }],
    copies: moved.copies,
    createInfo: ([head = after]) => ({ after: head, accepted, ...given({ before, change, withinBoundsOf }) }),
  };
}

/** Compares nothing where an archive cannot be read. @throws WritError CHANGE_TOO_LARGE */
async function compareToTarget(
  state: RepositoryState,
  source: ListedRelease,
  { bundle, to }: PromoteRequest,
  { limits = defaultArchiveLimits, change: bounds, read }: PlanOptions,
): Promise<Pick<HeadChange, 'change' | 'accepted' | 'withinBoundsOf'>> {
  const head = await readHead(state, { bundle, channel: to }, { limits, known: read.head });
  const { digest } = source.release.manifest;
  const manifest =
    read.source?.digest === digest
      ? read.source.manifest
      : (await readManifestOf(state.layout, source, limits))?.manifest;
  read.head = head;
  read.source = manifest && { digest, manifest };
  if (head === undefined || manifest === undefined) return { accepted: [] };
  const { stamped, fixes } = source.release;
  const after = unstamped(manifest, stamped?.stamps);
  return compareToHeads(state, { bundle, channel: to, fixes }, { head, after, bounds, limits });
}

/** Another publisher may have published after the hosts were asked. */
function requireAsked({ bundle, serial }: ReleaseInfo, { serial: asked, from }: PromoteRequest): void {
  if (asked === undefined || asked === serial) return;
  throw new WritError(
    'RELEASE_NOT_SETTLED',
    `${from} has ${bundle} ${serial} by now: ${asked} was asked about`,
    {
      facts: { bundle, channel: from, expected: asked, actual: serial },
      hint: 'Promote again: the hosts are asked about the newer release.',
    },
  );
}

function requireAcceptable(
  state: RepositoryState,
  { release }: ListedRelease,
  before: ReleaseInfo | undefined,
): void {
  // Checked first, because the remedy of the other error does not help for a withdrawn release.
  requireNotWithdrawn(state, release);
  const { bundle, serial } = release;
  if (before === undefined || before.serial <= serial) return;
  const { channel, serial: head } = before;
  throw new WritError('RELEASE_REFUSED', `${channel} is ahead: it has ${head}, above ${serial}`, {
    facts: { bundle, serial, head, expected: head, actual: serial },
    hint: `Withdraw ${head} first, or publish the tree to ${channel}: it gets the next serial.`,
  });
}
