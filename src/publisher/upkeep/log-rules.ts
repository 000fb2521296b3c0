// Decides what one version of a role changed, by comparing what it lists with what the previous version lists: publish,
// withdraw, promote, delegate, or only re-sign. Pure. The input is verified already (log-versions).

import { isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { parseReleaseInfo, type ReleaseInfo, type Withdrawal } from '../../core/release/release.js';
import type { DelegatedRole, RootSigned, TargetFile, TargetsSigned } from '../../core/tuf/tuf-metadata.js';
import { nameOfKey } from '../keys/signer-names.js';

/** A change of one channel. */
export interface ReleaseAct {
  /** `move`: a delegation moved the release to another role. `change`: the same serial with other content or deltas. */
  readonly kind: 'publish' | 'withdraw' | 'promote' | 'move' | 'change' | 'remove';
  readonly bundle: string;
  readonly channel: string;
  /** Absent for the first release of a channel. */
  readonly fromSerial?: number;
  /** Absent where the channel is no longer listed. */
  readonly toSerial?: number;
  readonly revision?: string;
  /** The serial of the release that it corrects. */
  readonly fixes?: number;
  /** The channel from which the release was promoted; absent where no retained version shows it. */
  readonly fromChannel?: string;
  /** The withdrawn serials. */
  readonly withdrawn?: readonly number[];
  readonly reason?: string;
}

/** The keys of a role that a version added and removed. */
export interface KeyChange {
  /** Key names, or the first characters of key ids. Attack: a thief can give a key any name, so readers also need the ids. */
  readonly addedKeys: readonly string[];
  readonly removedKeys: readonly string[];
  /** The ids of these keys, in the same order. */
  readonly addedKeyIds: readonly string[];
  readonly removedKeyIds: readonly string[];
}

export interface DelegationAct extends KeyChange {
  readonly kind: 'delegate';
  readonly team: string;
  readonly change: 'created' | 'changed' | 'removed';
  readonly threshold?: number;
  readonly paths?: readonly string[];
}

export interface RootAct {
  readonly kind: 'init' | 'root';
  readonly roles: readonly (KeyChange & {
    readonly role: string;
    readonly threshold: number;
    readonly thresholdBefore?: number;
  })[];
}

/** A re-signed version: the same content under a new version and expiry. */
export interface ResignAct {
  readonly kind: 're-sign';
  /** The content equals a hand-over, and not the previous version. */
  readonly handedOver?: true;
}

export type LogAct = ReleaseAct | DelegationAct | RootAct | ResignAct;

type Targets = Readonly<Record<string, TargetFile>>;

/** @returns the changes between the targets of one version and those of the next, by path */
export function releaseActs(before: Targets, after: Targets): ReleaseAct[] {
  const old = releasesIn(before);
  const next = releasesIn(after);
  const acts: ReleaseAct[] = [];
  for (const [path, release] of next) {
    const act = describeAct(release, old.get(path), old);
    if (act !== undefined) acts.push(act);
  }
  for (const [path, { bundle, channel, serial }] of old) {
    if (!next.has(path)) acts.push({ kind: 'remove', bundle, channel, fromSerial: serial });
  }
  return acts;
}

/** Skips targets of other publishers, which carry no release information of Writ. */
function releasesIn(targets: Targets): Map<string, ReleaseInfo> {
  const found = new Map<string, ReleaseInfo>();
  for (const path of Object.keys(targets).sort()) {
    const release = releaseOf(path, targets[path]);
    if (release !== undefined) found.set(path, release);
  }
  return found;
}

function releaseOf(path: string, file: TargetFile | undefined): ReleaseInfo | undefined {
  try {
    return parseReleaseInfo(file?.custom, path);
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

function describeAct(
  release: ReleaseInfo,
  before: ReleaseInfo | undefined,
  listed: ReadonlyMap<string, ReleaseInfo>,
): ReleaseAct | undefined {
  const { bundle, channel, serial, revision, fixes, withdrawal } = release;
  const from = before === undefined ? {} : { fromSerial: before.serial };
  const act = { bundle, channel, ...from, toSerial: serial, revision, ...given({ fixes }) };
  if (withdrawal !== undefined && !isSameWithdrawal(withdrawal, before?.withdrawal)) {
    const { serials, reason } = withdrawal;
    return { kind: 'withdraw', ...act, withdrawn: serials, ...(reason === '' ? {} : { reason }) };
  }
  if (before?.serial === serial)
    return JSON.stringify(before) === JSON.stringify(release) ? undefined : { kind: 'change', ...act };
  const source = [...listed.values()].find((one) => isSameRelease(one, release));
  if (source !== undefined) return { kind: 'promote', ...act, fromChannel: source.channel };
  // Each serial is used once. A known serial therefore comes from another channel or from an older release.
  const highest = Math.max(
    0,
    ...[...listed.values()].filter((one) => one.bundle === bundle).map((one) => one.serial),
  );
  return { kind: serial > highest ? 'publish' : 'change', ...act };
}

function isSameRelease(one: ReleaseInfo, other: ReleaseInfo): boolean {
  const isSame = one.bundle === other.bundle && one.serial === other.serial;
  return isSame && one.manifest.digest === other.manifest.digest;
}

function isSameWithdrawal(one: Withdrawal, other: Withdrawal | undefined): boolean {
  return other !== undefined && one.atMs === other.atMs && one.serials.join() === other.serials.join();
}

/**
 * Marks the acts of a delegation that only moved releases between roles. A release that hosts did not see in the other role
 * counts as published by it. A release with withdrawn serials is new in this role with the withdrawal of the other role,
 * which made it.
 * @param isMoved true for a release that hosts saw in another role, with the same withdrawal
 */
export function toMoves(acts: readonly ReleaseAct[], isMoved: (act: ReleaseAct) => boolean): ReleaseAct[] {
  return acts.map((act) => {
    const isNew = act.kind === 'withdraw' && act.fromSerial === undefined;
    if (!(isNew || act.kind === 'publish' || act.kind === 'change') || !isMoved(act)) return act;
    const { withdrawn: _, reason: __, ...release } = act;
    return { ...release, kind: 'move' };
  });
}

/**
 * @returns an act for each delegation that differs, sorted by team: change is created, changed or removed; added and removed
 *   keys; threshold and paths, left out for removed
 */
export function delegationActs(before: TargetsSigned | undefined, after: TargetsSigned): DelegationAct[] {
  const old = new Map((before?.delegations?.roles ?? []).map((role) => [role.name, role]));
  const next = new Map((after.delegations?.roles ?? []).map((role) => [role.name, role]));
  return [...new Set([...old.keys(), ...next.keys()])].sort().flatMap((team) => {
    const was = old.get(team);
    const is = next.get(team);
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    return {
      kind: 'delegate' as const,
      team,
      change:
        was === undefined
          ? ('created' as const)
          : is === undefined
            ? ('removed' as const)
            : ('changed' as const),
      ...compareKeys({ before, after }, was?.keyids, is?.keyids),
      ...(is === undefined ? {} : { threshold: is.threshold, paths: pathsOf(is) }),
    };
  });
}

function pathsOf({ paths, path_hash_prefixes }: DelegatedRole): readonly string[] {
  return paths ?? (path_hash_prefixes ?? []).map((prefix) => `digest ${prefix}`);
}

/** @returns the roles in which a root changed keys or threshold; all roles for the first root */
export function rootAct(before: RootSigned | undefined, after: RootSigned): RootAct {
  const roles = Object.entries(after.roles).flatMap(([role, { keyids, threshold }]) => {
    const was = before?.roles[role as keyof RootSigned['roles']];
    const keys = compareKeys({ before, after }, was?.keyids, keyids);
    if (keys.addedKeys.length + keys.removedKeys.length === 0 && was?.threshold === threshold) return [];
    const thresholdBefore =
      was === undefined || was.threshold === threshold ? {} : { thresholdBefore: was.threshold };
    return [{ role, ...keys, threshold, ...thresholdBefore }];
  });
  return { kind: before === undefined ? 'init' : 'root', roles };
}

/** @returns the difference of two lists of key ids, with the names that the two files give to the keys */
function compareKeys(
  { before, after }: { readonly before: object | undefined; readonly after: object },
  idsBefore: readonly string[] | undefined,
  idsAfter: readonly string[] | undefined,
): KeyChange {
  const addedKeyIds = findAddedIds(idsBefore, idsAfter);
  const removedKeyIds = findAddedIds(idsAfter, idsBefore);
  return {
    addedKeys: addedKeyIds.map((id) => nameOfKey(after, id)),
    removedKeys: removedKeyIds.map((id) => nameOfKey(before ?? after, id)),
    addedKeyIds,
    removedKeyIds,
  };
}

function findAddedIds(before: readonly string[] = [], after: readonly string[] = []): string[] {
  return after.filter((id) => !before.includes(id));
}
