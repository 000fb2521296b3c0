// `writ promote`: what one channel has tried becomes the head of another: the same archive, the same serial.
// Refuses what hosts of the other channel would refuse.
import { WritError } from '../../core/errors.js';
import { digestFromHex, targetPath } from '../../core/names.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { findHead, type ListedRelease } from '../repository/listing.js';
import { layoutOf } from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import type { ChangeOptions } from '../signing/sign-change.js';
import { type ChangeResult, changeTargets, type TargetsChange } from './change-targets.js';
import { requireArchive, requireStanding } from './withdraw.js';

export interface PromoteRequest {
  readonly bundle: string;
  /** Channel whose head is taken. */
  readonly from: string;
  readonly to: string;
}

export interface Promotion {
  /** The head of the channel before; absent for its first release. */
  readonly before?: ReleaseInfo;
  readonly after: ReleaseInfo;
}

export type PromoteResult = ChangeResult<Promotion>;

/** @throws WritError RELEASE_UNKNOWN, RELEASE_UNAVAILABLE, RELEASE_REFUSED, USAGE, and what changeTargets throws */
export async function promoteRelease(
  request: PromoteRequest,
  options: ChangeOptions,
): Promise<PromoteResult> {
  return changeTargets(options, (state) => planPromotion(state, request));
}

/** @returns what promoteRelease would do; undefined when there is nothing to do. @throws as it does */
export function previewPromotion(
  request: PromoteRequest,
  { repository, keys }: ChangeOptions,
): Promotion | undefined {
  return planPromotion(readRepositoryState(layoutOf(repository), keys.path), request)?.info;
}

function planPromotion(
  state: RepositoryState,
  request: PromoteRequest,
): TargetsChange<Promotion> | undefined {
  const { bundle, from, to } = request;
  if (from === to)
    throw new WritError('USAGE', '--from and --to are the same channel', { facts: { channel: from } });
  const source = findHead(state, bundle, from);
  if (source === undefined) {
    throw new WritError('RELEASE_UNKNOWN', `the repository lists no ${bundle} on ${from}`, {
      facts: { bundle, channel: from },
    });
  }
  const before = findHead(state, bundle, to)?.release;
  if (before?.serial === source.release.serial) return undefined;
  requireAcceptable(state, source, before);
  requireArchive(state.layout, source);
  // Both lists: a host may have accepted on either channel what was taken back there.
  const withdrawn = [...new Set([...source.release.withdrawn, ...(before?.withdrawn ?? [])])].sort(
    (a, b) => a - b,
  );
  const { withdrawal: _ofTheOtherChannel, ...release } = source.release;
  const after: ReleaseInfo = { ...release, channel: to, withdrawn };
  const digest = digestFromHex(source.file.hashes['sha256']);
  return {
    entries: { [targetPath(bundle, to)]: { ...source.file, custom: { writ: encodeReleaseInfo(after) } } },
    copies: digest === undefined ? [] : [{ from: { bundle, channel: from, digest }, channel: to }],
    info: { after, ...(before === undefined ? {} : { before }) },
  };
}

function requireAcceptable(
  state: RepositoryState,
  { release }: ListedRelease,
  before: ReleaseInfo | undefined,
): void {
  // First: what is withdrawn cannot be promoted by withdrawing what is ahead of it.
  requireStanding(state, release);
  const { bundle, serial } = release;
  if (before === undefined || before.serial <= serial) return;
  throw new WritError(
    'RELEASE_REFUSED',
    `${before.channel} is ahead: it has ${before.serial}, above ${serial}`,
    {
      facts: { bundle, serial, head: before.serial, expected: before.serial, actual: serial },
      hint: `Withdraw ${before.serial} first, or publish the tree to ${before.channel}: it gets the next serial.`,
    },
  );
}
