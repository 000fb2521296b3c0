// `writ withdraw`: withdraws a bad release with a signature. The channel then points to an older release. Hosts follow
// because of the list of withdrawn serials, which every later release repeats (docs/adr/0002). Chooses the release that a
// channel returns to, and refuses a choice that hosts would refuse.
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
  /** The serial that the channel returns to; by default that of the newest release that is not withdrawn. */
  readonly to?: number | undefined;
  /** By default every channel of the bundle. */
  readonly channel?: string | undefined;
  /** For people; may be empty. */
  readonly reason: string;
}

/** The change of one channel. The serial stays the same where only the list of withdrawn serials grew. */
export interface ChannelMove {
  readonly before: ReleaseInfo;
  readonly after: ReleaseInfo;
}

export type WithdrawResult = TargetsResult<readonly ChannelMove[]>;

/**
 * Withdraws releases of a bundle, and publishes the change. If its head is withdrawn, a channel moves to another release.
 * @returns `nothing-new` if all serials were withdrawn before and no file waited. `live`: hosts see the change. `waiting`: the
 *   online keys in `missing` must still sign. `info` has one move for each changed channel
 * @throws WritError RELEASE_UNKNOWN for an unknown bundle, channel or serial, RELEASE_UNAVAILABLE without the archive of the
 *   release to return to, RELEASE_REFUSED if `to` is withdrawn, refused by hosts or not needed, USAGE for the reason;
 *   KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, CLOCK_UNSURE, REPOSITORY_LOCKED, REPOSITORY_INVALID, SIGNATURE_DISAGREEMENT,
 *   DISK_*
 */
export async function withdrawRelease(
  request: WithdrawRequest,
  options: MoveOptions,
): Promise<WithdrawResult> {
  requireText(request.reason, 'the reason');
  return changeTargets(options, (state) => planWithdrawal(state, request, options.clock.nowMs()));
}

/** @returns the moves that withdrawRelease would make, without a key and without a write. @throws as withdrawRelease */
export function previewWithdrawal(request: WithdrawRequest, options: ChangeOptions): readonly ChannelMove[] {
  requireText(request.reason, 'the reason');
  return planWithdrawal(readStateBeforeLock(options), request, options.clock.nowMs())?.createInfo([]) ?? [];
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
  const createInfo = (made: readonly ReleaseInfo[]): ChannelMove[] =>
    info.map(({ before, after }, index) => ({ before, after: made[index] ?? after }));
  return info.length === 0 ? undefined : { moves, copies, createInfo };
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
  // A serial that is withdrawn before it exists could never be used.
  const message = `${bundle} has no serial ${unknown}; the highest so far is ${highest}`;
  throw new WritError('RELEASE_UNKNOWN', message, { facts: { bundle, expected: highest, actual: unknown } });
}

/** Refuses a `--to` that moves no channel, because the operator expects a change. */
function requireUsedTarget({ to, bundle }: WithdrawRequest, moves: readonly ChannelMove[]): void {
  if (to === undefined || moves.some(({ after }) => after.serial === to)) return;
  throw new WritError('RELEASE_REFUSED', `no channel of ${bundle} has to change, so none can get ${to}`, {
    facts: { bundle, serial: to },
    hint: 'Omit --to, or withdraw the newest release of the channel.',
  });
}

/** The data for choosing the release that a channel returns to when its head is withdrawn. */
interface Choice {
  readonly state: RepositoryState;
  readonly to: number | undefined;
  /** The heads of all requested channels. */
  readonly heads: readonly ListedRelease[];
  readonly head: ListedRelease;
  readonly history: readonly ListedRelease[];
  readonly withdrawn: readonly number[];
}

/**
 * Suggests a channel that still has a release, because in an outage the channel that hosts follow matters, and not one
 * without any good release.
 */
function otherChannelHint({ heads, head, history, withdrawn }: Choice): string | undefined {
  const isLeft = ({ release }: ListedRelease): boolean => !withdrawn.includes(release.serial);
  const other = heads.find(
    (one) =>
      !isLeft(one) && history.some((left) => left.release.channel === one.release.channel && isLeft(left)),
  );
  if (other === undefined) return undefined;
  return `\`--channel ${other.release.channel}\` withdraws it there; on ${head.release.channel}, publish a good tree first.`;
}

/** No release can follow the highest serial, so publishing a good tree first is not possible. */
function newNameHint({ release }: ListedRelease): string | undefined {
  if (release.serial < maxSerial) return undefined;
  return `No serial can follow ${release.serial}: publish the policy under a new bundle name, and change \`bundles\` on the hosts (docs/operations.md, "A stolen targets key").`;
}

/** @returns the releases of the channel by replaced keys of its team, or by a removed team, which `--to` may name */
function listFormerReleases({ state, head, withdrawn }: Choice): readonly ListedRelease[] {
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
  const [former] = listFormerReleases(choice);
  if (former === undefined) return undefined;
  const { bundle, serial } = former.release;
  return `\`--to ${serial}\` returns to a release that hosts saw before the key of ${former.role} was replaced or its delegation ended; \`writ repo log --bundle ${bundle}\` shows it. Or publish a good tree first.`;
}

/** Attack: a stolen key signs a file with any content under that serial, and a stolen snapshot key lists the file. */
const untrustedHint =
  'Only replaced keys signed it. Publish its files again: the release gets the next serial, and all hosts accept it. Then withdraw.';

function chooseRelease(choice: Choice): ListedRelease {
  const { state, to, head, history, withdrawn } = choice;
  const { bundle, channel } = head.release;
  const facts = { bundle, channel };
  const available = history.filter(
    ({ release }) => release.channel === channel && !withdrawn.includes(release.serial),
  );
  if (to === undefined) {
    const [newest] = available;
    if (newest === undefined) {
      const message = `${bundle} ${channel}: no release is left that is not withdrawn and is signed by current keys`;
      throw new WritError('RELEASE_UNAVAILABLE', message, {
        facts: { ...facts, withdrawn: withdrawn.slice(-20) },
        ...given({ hint: otherChannelHint(choice) ?? formerHint(choice) ?? newNameHint(head) }),
      });
    }
    requireAcceptedByHosts(choice, newest.release.serial);
    return newest;
  }
  requireAcceptedByHosts(choice, to);
  // A release of another channel is possible too, because serials are unique within the bundle.
  const isNamed = ({ release }: ListedRelease): boolean => release.serial === to;
  const chosen = [...available, ...history].find(isNamed) ?? listFormerReleases(choice).find(isNamed);
  if (chosen === undefined) {
    const message = `${bundle} has no serial ${to} that current keys trust`;
    const isListed = listSerials(state.layout, { bundle, channel }).has(to);
    const hint = isListed ? untrustedHint : undefined;
    throw new WritError('RELEASE_UNKNOWN', message, { facts: { ...facts, serial: to }, ...given({ hint }) });
  }
  if (chosen.release.channel !== channel) requireNotWithdrawn(state, chosen.release);
  return chosen;
}

/**
 * Refuses a release that is withdrawn on any channel, so that it does not return through another one.
 * @throws WritError RELEASE_REFUSED
 */
export function requireNotWithdrawn(
  state: RepositoryState,
  { bundle, serial }: Pick<ReleaseInfo, 'bundle' | 'serial'>,
): void {
  const withdrawing = headsOf(state, bundle).find((head) => head.release.withdrawn.includes(serial));
  if (withdrawing === undefined) return;
  const { channel } = withdrawing.release;
  throw new WritError('RELEASE_REFUSED', `${bundle} ${serial} is withdrawn on ${channel}`, {
    facts: { bundle, serial, channel },
  });
}

const maxNamed = 20;

/**
 * Requires that every release between the head and the chosen one is withdrawn. Otherwise hosts would refuse the older
 * release as a replay.
 */
function requireAcceptedByHosts({ state, head, withdrawn }: Choice, to: number): void {
  const { bundle, channel, serial: from } = head.release;
  const facts = { bundle, channel, serial: to };
  if (withdrawn.includes(to)) {
    throw new WritError('RELEASE_REFUSED', `${bundle} ${to} is itself withdrawn`, { facts });
  }
  // Includes releases that only former keys have signed. They are not chosen, but hosts have accepted them.
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

/** @returns the release as the head of a channel, with its present deltas, and the files that need a name on that channel */
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

/** Checks the presence before a key is opened. The digest is verified before the release is published. */
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
