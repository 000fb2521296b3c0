// `writ withdraw`: takes a bad release back by a signed act. The channel points at an older release, and the list
// of what was withdrawn, which every later release carries on, lets hosts follow it back (docs/adr/0002).
// Owns which release a channel goes back to, and refuses what hosts would refuse.
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { maxSerial } from '../../core/release/serial.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import { headsOf, highestSerial, type ListedRelease, unionOf } from '../repository/listing.js';
import { requireText } from '../repository/metadata-content.js';
import { archiveOf, filesOf, isFilePresent, listPresentDeltas } from '../repository/release-files.js';
import { pathOf, type RepositoryLayout, rolesOnDisk } from '../repository/repository-layout.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { listSerials } from '../repository/unverified-metadata.js';
import { type ChangeOptions, readStateBeforeLock } from '../signing/sign-change.js';
import { changeTargets, type TargetsChange, type TargetsResult } from './change-targets.js';
import { formerReleases } from './former-releases.js';
import type { MoveOptions, ReleaseMove } from './moved-deltas.js';
import { releaseHistory } from './release-history.js';

export interface WithdrawRequest {
  readonly bundle: string;
  /** At least one. */
  readonly serials: readonly number[];
  /** Where the channel goes; by default the newest release that is not withdrawn. */
  readonly to?: number | undefined;
  /** By default every channel of the bundle. */
  readonly channel?: string | undefined;
  /** For people; may be empty. */
  readonly reason: string;
}

/** What becomes of one channel; the same serial before and after: only the list of withdrawn ones grew. */
export interface ChannelMove {
  readonly before: ReleaseInfo;
  readonly after: ReleaseInfo;
}

export type WithdrawResult = TargetsResult<readonly ChannelMove[]>;

/**
 * Withdraws releases.
 * @throws WritError RELEASE_UNKNOWN, RELEASE_UNAVAILABLE, RELEASE_REFUSED, USAGE, and what changeTargets throws
 */
export async function withdrawRelease(
  request: WithdrawRequest,
  options: MoveOptions,
): Promise<WithdrawResult> {
  requireText(request.reason, 'the reason');
  return changeTargets(options, (state) => planWithdrawal(state, request, options.clock.nowMs()));
}

/** @returns the moves that withdrawRelease would make, without a key and without a write. @throws as it does */
export function previewWithdrawal(request: WithdrawRequest, options: ChangeOptions): readonly ChannelMove[] {
  requireText(request.reason, 'the reason');
  return planWithdrawal(readStateBeforeLock(options), request, options.clock.nowMs())?.tell([]) ?? [];
}

function planWithdrawal(
  state: RepositoryState,
  request: WithdrawRequest,
  nowMs: number,
): TargetsChange<readonly ChannelMove[]> | undefined {
  const heads = affectedHeads(state, request);
  const history = releaseHistory(state, request.bundle);
  const info: ChannelMove[] = [];
  const moves: ReleaseMove[] = [];
  const copies: TargetsChange<unknown>['copies'][number][] = [];
  for (const head of heads) {
    const before = head.release;
    const { channel, serial } = before;
    const withdrawn = unionOf(before.withdrawn, request.serials);
    if (withdrawn.length === before.withdrawn.length) continue;
    const choice = { state, to: request.to, heads, head, history, withdrawn };
    const chosen = withdrawn.includes(serial) ? chooseRelease(choice) : head;
    requireArchive(state.layout, chosen);
    const serials = [...request.serials].sort((a, b) => a - b);
    const withdrawal = { serials, atMs: nowMs, reason: request.reason };
    const moved = moveTo(state.layout, chosen, channel);
    const after: ReleaseInfo = { ...moved.release, withdrawn, withdrawal };
    moves.push({ from: chosen, release: after });
    copies.push(...moved.copies);
    info.push({ before, after });
  }
  requireUsedTarget(request, info);
  const tell = (made: readonly ReleaseInfo[]): ChannelMove[] =>
    info.map(({ before, after }, index) => ({ before, after: made[index] ?? after }));
  return info.length === 0 ? undefined : { moves, copies, tell };
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
  const message = `${bundle} has no serial ${unknown}; the highest so far is ${highest}`;
  throw new WritError('RELEASE_UNKNOWN', message, { facts: { bundle, expected: highest, actual: unknown } });
}

/** `--to` that moves no channel would be a promise that is not kept. */
function requireUsedTarget({ to, bundle }: WithdrawRequest, moves: readonly ChannelMove[]): void {
  if (to === undefined || moves.some(({ after }) => after.serial === to)) return;
  throw new WritError('RELEASE_REFUSED', `no channel of ${bundle} has to change, so none can get ${to}`, {
    facts: { bundle, serial: to },
    hint: 'Omit --to, or withdraw the newest release of the channel.',
  });
}

/** Where a channel whose head is withdrawn can go. */
interface Choice {
  readonly state: RepositoryState;
  readonly to: number | undefined;
  /** Of every channel that is asked about. */
  readonly heads: readonly ListedRelease[];
  readonly head: ListedRelease;
  readonly history: readonly ListedRelease[];
  readonly withdrawn: readonly number[];
}

/** At three in the morning the channel that hosts follow counts, and not the one that has nothing left. */
function otherChannel({ heads, head, history, withdrawn }: Choice): string | undefined {
  const isLeft = ({ release }: ListedRelease): boolean => !withdrawn.includes(release.serial);
  const other = heads.find(
    (one) =>
      !isLeft(one) && history.some((left) => left.release.channel === one.release.channel && isLeft(left)),
  );
  if (other === undefined) return undefined;
  return `\`--channel ${other.release.channel}\` withdraws it there; on ${head.release.channel}, publish a good tree first.`;
}

/** No release can follow the highest serial, so that publishing a good tree first is not possible. */
function newNameHint({ release }: ListedRelease): string | undefined {
  if (release.serial < maxSerial) return undefined;
  return `No serial can follow ${release.serial}: publish the policy under a new bundle name, and change \`bundles\` on the hosts (docs/operations.md, "A stolen targets key").`;
}

/** Releases of the channel by replaced keys of its team, or by a removed team, which `--to` may name. */
function formerOf({ state, head, withdrawn }: Choice): readonly ListedRelease[] {
  const { role, release } = head;
  const { bundle, channel } = release;
  const roles = role === 'targets' ? removedRoles(state) : [role];
  const releases = roles.flatMap((one) => formerReleases(state, { role: one, bundle }));
  return releases.filter((one) => {
    return one.release.channel === channel && !withdrawn.includes(one.release.serial);
  });
}

function removedRoles({ layout, targets }: RepositoryState): readonly string[] {
  const current = new Set([
    'root',
    'snapshot',
    'targets',
    ...delegatedRolesOf(targets).map(({ name }) => name),
  ]);
  return rolesOnDisk(layout).filter((role) => !current.has(role));
}

function formerHint(choice: Choice): string | undefined {
  const [former] = formerOf(choice);
  if (former === undefined) return undefined;
  const { bundle, serial } = former.release;
  return `\`--to ${serial}\` returns to a release that hosts saw before the key of ${former.role} was replaced or its delegation ended; \`writ repo log --bundle ${bundle}\` shows it. Or publish a good tree first.`;
}

/** A stolen key can sign a file with any content under that serial, and a stolen snapshot key can list the file. */
const untrustedHint =
  'Only replaced keys signed it. Publish its files again: the release gets the next serial, and all hosts accept it. Then withdraw.';

function chooseRelease(choice: Choice): ListedRelease {
  const { state, to, head, history, withdrawn } = choice;
  const { bundle, channel } = head.release;
  const facts = { bundle, channel };
  const standing = history.filter(
    ({ release }) => release.channel === channel && !withdrawn.includes(release.serial),
  );
  if (to === undefined) {
    const [newest] = standing;
    if (newest === undefined) {
      const message = `${bundle} ${channel}: no release is left that is not withdrawn and is signed by current keys`;
      throw new WritError('RELEASE_UNAVAILABLE', message, {
        facts: { ...facts, withdrawn: withdrawn.slice(-20) },
        ...given({ hint: otherChannel(choice) ?? formerHint(choice) ?? newNameHint(head) }),
      });
    }
    requireFollowed(choice, newest.release.serial);
    return newest;
  }
  requireFollowed(choice, to);
  // A release of another channel serves as well: its serial is the bundle's.
  const isNamed = ({ release }: ListedRelease): boolean => release.serial === to;
  const chosen = [...standing, ...history].find(isNamed) ?? formerOf(choice).find(isNamed);
  if (chosen === undefined) {
    const message = `${bundle} has no serial ${to} that current keys trust`;
    const isListed = listSerials(state.layout, { bundle, channel }).has(to);
    const hint = isListed ? untrustedHint : undefined;
    throw new WritError('RELEASE_UNKNOWN', message, { facts: { ...facts, serial: to }, ...given({ hint }) });
  }
  if (chosen.release.channel !== channel) requireStanding(state, chosen.release);
  return chosen;
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
function requireFollowed({ state, head, withdrawn }: Choice, to: number): void {
  const { bundle, channel, serial: from } = head.release;
  const facts = { bundle, channel, serial: to };
  if (withdrawn.includes(to)) {
    throw new WritError('RELEASE_REFUSED', `${bundle} ${to} is itself withdrawn`, { facts });
  }
  // Also what only former keys have signed: nobody goes back to it, and hosts have accepted it.
  const between = [...listSerials(state.layout, { bundle, channel })]
    .filter((serial) => serial > to && serial <= from && !withdrawn.includes(serial))
    .sort((a, b) => b - a);
  if (between.length === 0) return;
  const flags = between.slice(0, maxNamed).map((serial) => `--serial ${serial}`);
  throw new WritError('RELEASE_REFUSED', `hosts that accepted ${bundle} ${between[0]} would refuse ${to}`, {
    facts: { ...facts, standing: between.slice(0, maxNamed) },
    hint: `Withdraw the releases between them as well: ${flags.join(' ')}`,
  });
}

/** @returns a release as the head of a channel, with the deltas that are left of it, and what has to get a name there */
export function moveTo(
  layout: RepositoryLayout,
  entry: ListedRelease,
  channel: string,
): { release: ReleaseInfo; copies: TargetsChange<unknown>['copies'] } {
  const { deltas: _, ...rest } = entry.release;
  const kept: ReleaseInfo = { ...rest, ...given({ deltas: listPresentDeltas(layout, entry) }) };
  const files = rest.channel === channel ? [] : filesOf({ ...entry, release: kept });
  return {
    release: { ...kept, channel },
    copies: files.map(({ place }) => ({ from: place, channel })),
  };
}

/** Its digest is verified before anything goes live; that it is there is worth knowing before a key is opened. */
export function requireArchive(layout: RepositoryLayout, entry: ListedRelease): void {
  const { bundle, channel, serial } = entry.release;
  const archive = archiveOf(entry);
  if (archive !== undefined && isFilePresent(layout, archive)) return;
  const path = archive && join(layout.targets, pathOf(archive.place));
  throw new WritError('RELEASE_UNAVAILABLE', `the archive of ${bundle} ${serial} is gone`, {
    facts: { bundle, channel, serial, path },
    hint: `Withdraw it as well (--serial ${serial}), or publish a good tree: it gets the next serial.`,
  });
}
