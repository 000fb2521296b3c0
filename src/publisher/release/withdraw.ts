// `writ withdraw`: takes a bad release back by a signed act. The channel points at an older release, and the list
// of what was withdrawn, which every later release carries on, lets hosts follow it back (docs/adr/0002).
// Owns which release a channel goes back to, and refuses what hosts would refuse.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { digestFromHex, targetPath } from '../../core/names.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import type { TargetFile } from '../../core/tuf/tuf-metadata.js';
import { headsOf, highestSerial, type ListedRelease } from '../repository/listing.js';
import { serialsListed } from '../repository/loose-metadata.js';
import { requireText } from '../repository/metadata-content.js';
import { archiveName, layoutOf, type RepositoryLayout } from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import type { ChangeOptions } from '../signing/sign-change.js';
import { type ArchiveCopy, type ChangeResult, changeTargets, type TargetsChange } from './change-targets.js';
import { releaseHistory } from './release-history.js';

export interface WithdrawRequest {
  readonly bundle: string;
  /** At least one. */
  readonly serials: readonly number[];
  /** Where the channel goes; by default the newest release that is not withdrawn. */
  readonly to?: number;
  /** By default every channel of the bundle. */
  readonly channel?: string;
  /** For people; may be empty. */
  readonly reason: string;
}

/** What becomes of one channel; the same serial before and after: only the list of withdrawn ones grew. */
export interface ChannelMove {
  readonly before: ReleaseInfo;
  readonly after: ReleaseInfo;
}

export type WithdrawResult = ChangeResult<readonly ChannelMove[]>;

/**
 * Withdraws releases.
 * @throws WritError RELEASE_UNKNOWN, RELEASE_UNAVAILABLE, RELEASE_REFUSED, USAGE, and what changeTargets throws
 */
export async function withdrawRelease(
  request: WithdrawRequest,
  options: ChangeOptions,
): Promise<WithdrawResult> {
  requireText(request.reason, 'the reason');
  return changeTargets(options, (state) => planWithdrawal(state, request, options.clock.nowMs()));
}

/** @returns the moves that withdrawRelease would make, without a key and without a write. @throws as it does */
export function previewWithdrawal(
  request: WithdrawRequest,
  { repository, keys, clock }: ChangeOptions,
): readonly ChannelMove[] {
  requireText(request.reason, 'the reason');
  const state = readRepositoryState(layoutOf(repository), keys.path);
  return planWithdrawal(state, request, clock.nowMs())?.info ?? [];
}

function planWithdrawal(
  state: RepositoryState,
  request: WithdrawRequest,
  nowMs: number,
): TargetsChange<readonly ChannelMove[]> | undefined {
  const heads = affectedHeads(state, request);
  const history = releaseHistory(state, request.bundle);
  const steps = heads.flatMap((head) => planChannel({ state, request, head, history, nowMs }) ?? []);
  requireUsedTarget(request, steps);
  if (steps.length === 0) return undefined;
  return {
    entries: Object.fromEntries(steps.map(({ path, file }) => [path, file])),
    copies: steps.flatMap(({ copy }) => copy ?? []),
    info: steps.map(({ move }) => move),
  };
}

function affectedHeads(
  state: RepositoryState,
  { bundle, channel, serials }: WithdrawRequest,
): readonly ListedRelease[] {
  const heads = headsOf(state, bundle).filter(
    ({ release }) => channel === undefined || release.channel === channel,
  );
  if (heads.length === 0) {
    const where = channel === undefined ? bundle : `${bundle} on ${channel}`;
    throw new WritError('RELEASE_UNKNOWN', `the repository lists no ${where}`, {
      facts: { bundle, channel },
    });
  }
  const highest = highestSerial(state, bundle);
  const unknown = serials.find((serial) => serial > highest);
  if (unknown === undefined) return heads;
  // Withdrawn before it exists, a serial could never be given to a release.
  throw new WritError(
    'RELEASE_UNKNOWN',
    `${bundle} has no serial ${unknown}, the highest ever is ${highest}`,
    {
      facts: { bundle, expected: highest, actual: unknown },
    },
  );
}

/** `--to` that moves no channel would be a promise that is not kept. */
function requireUsedTarget({ to, bundle }: WithdrawRequest, steps: readonly ChannelStep[]): void {
  if (to === undefined || steps.some(({ move }) => move.after.serial === to)) return;
  throw new WritError('RELEASE_REFUSED', `no channel of ${bundle} has to move, so none can go to ${to}`, {
    facts: { bundle, serial: to },
    hint: 'Leave --to out, or withdraw the head of the channel.',
  });
}

interface ChannelStep {
  readonly path: string;
  readonly file: TargetFile;
  readonly copy?: ArchiveCopy;
  readonly move: ChannelMove;
}

interface ChannelPlan {
  readonly state: RepositoryState;
  readonly request: WithdrawRequest;
  readonly head: ListedRelease;
  readonly history: readonly ListedRelease[];
  readonly nowMs: number;
}

function planChannel(plan: ChannelPlan): ChannelStep | undefined {
  const { head, request, nowMs, state } = plan;
  const before = head.release;
  const { serials, reason } = request;
  const withdrawn = [...new Set([...before.withdrawn, ...serials])].sort((a, b) => a - b);
  if (withdrawn.length === before.withdrawn.length) return undefined;
  const chosen = withdrawn.includes(before.serial) ? chooseRelease(plan, withdrawn) : head;
  requireArchive(state.layout, chosen);
  const { channel } = before;
  const withdrawal = { serials: [...serials].sort((a, b) => a - b), atMs: nowMs, reason };
  const after: ReleaseInfo = { ...chosen.release, channel, withdrawn, withdrawal };
  const file = { ...chosen.file, custom: { writ: encodeReleaseInfo(after) } };
  const path = targetPath(before.bundle, channel);
  return { path, file, move: { before, after }, ...copyOf(chosen, channel) };
}

function chooseRelease(plan: ChannelPlan, withdrawn: readonly number[]): ListedRelease {
  const { state, request, head, history } = plan;
  const { bundle, channel } = head.release;
  const standing = history.filter(
    ({ release }) => release.channel === channel && !withdrawn.includes(release.serial),
  );
  const { to } = request;
  if (to === undefined) {
    const [newest] = standing;
    if (newest === undefined) throw nothingLeft({ bundle, channel }, withdrawn);
    requireFollowed(plan, newest.release.serial, withdrawn);
    return newest;
  }
  requireFollowed(plan, to, withdrawn);
  // A release of another channel serves as well: its serial is the bundle's.
  const chosen =
    standing.find(({ release }) => release.serial === to) ??
    history.find(({ release }) => release.serial === to);
  if (chosen === undefined) throw unknownRelease({ bundle, channel }, to);
  if (chosen.release.channel !== channel) requireStanding(state, chosen.release);
  return chosen;
}

function nothingLeft(
  facts: { readonly bundle: string; readonly channel: string },
  withdrawn: readonly number[],
): WritError {
  const { bundle, channel } = facts;
  const message = `${bundle} ${channel}: no release is left that is not withdrawn and that the keys of today have signed`;
  return new WritError('RELEASE_UNAVAILABLE', message, {
    facts: { ...facts, withdrawn: withdrawn.slice(-20) },
  });
}

function unknownRelease(facts: { readonly bundle: string; readonly channel: string }, to: number): WritError {
  const message = `${facts.bundle} has no serial ${to} that the keys of today vouch for`;
  return new WritError('RELEASE_UNKNOWN', message, { facts: { ...facts, serial: to } });
}

/**
 * What was found bad on one channel must not come back by another.
 * @throws WritError RELEASE_REFUSED
 */
export function requireStanding(
  state: RepositoryState,
  { bundle, serial }: Pick<ReleaseInfo, 'bundle' | 'serial'>,
): void {
  const takenBack = headsOf(state, bundle).find((head) => head.release.withdrawn.includes(serial));
  if (takenBack === undefined) return;
  const { channel } = takenBack.release;
  throw new WritError('RELEASE_REFUSED', `${bundle} ${serial} is withdrawn on ${channel}`, {
    facts: { bundle, serial, channel },
  });
}

const maxNamed = 20;

/** Hosts go back only over releases that are all withdrawn: anything else would look like a replay to them. */
function requireFollowed({ state, head }: ChannelPlan, to: number, withdrawn: readonly number[]): void {
  const { bundle, channel, serial: from } = head.release;
  const facts = { bundle, channel, serial: to };
  if (withdrawn.includes(to)) {
    throw new WritError('RELEASE_REFUSED', `${bundle} ${to} is withdrawn itself`, { facts });
  }
  // Also what only former keys have signed: nobody goes back to it, and hosts have accepted it.
  const between = [...serialsListed(state.layout, { bundle, channel })]
    .filter((serial) => serial > to && serial <= from && !withdrawn.includes(serial))
    .sort((a, b) => b - a);
  if (between.length === 0) return;
  const flags = between.slice(0, maxNamed).map((serial) => `--serial ${serial}`);
  throw new WritError('RELEASE_REFUSED', `hosts that accepted ${bundle} ${between[0]} would refuse ${to}`, {
    facts: { ...facts, standing: between.slice(0, maxNamed) },
    hint: `Withdraw what lies between as well: ${flags.join(' ')}`,
  });
}

function copyOf({ release, file }: ListedRelease, channel: string): { copy?: ArchiveCopy } {
  const digest = digestFromHex(file.hashes['sha256']);
  if (release.channel === channel || digest === undefined) return {};
  return { copy: { from: { bundle: release.bundle, channel: release.channel, digest }, channel } };
}

/** Its digest is verified before anything goes live; that it is there is worth knowing before a key is opened. */
export function requireArchive(layout: RepositoryLayout, { release, file }: ListedRelease): void {
  const digest = digestFromHex(file.hashes['sha256']);
  const { bundle, channel, serial } = release;
  const path = digest && join(layout.targets, bundle, archiveName(channel, digest));
  const status = path === undefined ? undefined : fs.statSync(path, { throwIfNoEntry: false });
  if (status?.isFile() && status.size === file.length) return;
  throw new WritError('RELEASE_UNAVAILABLE', `the archive of ${bundle} ${serial} is not there any more`, {
    facts: { bundle, channel, serial, path },
    hint: `Withdraw it as well (--serial ${serial}), or publish a good tree: it gets the next serial.`,
  });
}
