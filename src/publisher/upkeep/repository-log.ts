// `writ repo log`: the signatures that the retained metadata of a repository proves. Joins log-versions and log-rules. Reads only
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import { handedOverBy } from '../repository/listing.js';
import { layoutOf, type RepositoryLayout, rolesOnDisk } from '../repository/repository-layout.js';
import { compareSigning } from '../repository/version-restarts.js';
import {
  isUnseenVersion,
  type Live,
  liveVersions,
  namedBy,
  type OnlineSummary,
  onlineSummary,
  onlineVersions,
  restartsIn,
} from './log-online.js';
import {
  defaultLogBounds,
  type LogBounds,
  type LogProblem,
  type LogSigner,
  type LogVersion,
  openLogReading,
} from './log-reading.js';
import { delegationActs, type LogAct, type ReleaseAct, releaseActs, rootAct, toMoves } from './log-rules.js';
import {
  listTargetsAuthorities,
  listTeamAuthorities,
  type PastAuthority,
  type RoleVersions,
  readLogRoots,
  readLogVersions,
  type Vouching,
} from './log-versions.js';

export interface LogEntry {
  readonly role: string;
  readonly version: number;
  /** The version for the comparison, because versions between are missing; absent where it is the previous version. */
  readonly since?: number;
  readonly signedAtMs?: number;
  readonly signers: readonly LogSigner[];
  /** The version is signed and not published yet. */
  readonly waiting?: true;
  /** No published version lists this release: a newer version was published in its place. */
  readonly neverLive?: true;
  readonly act: LogAct;
}

/** The first version in the log of a role that does not begin with version 1. */
export interface LogBeginning {
  readonly role: string;
  readonly version: number;
  /** `gone`: the older versions were removed. `not-read`: they are beyond the bounds of the log. */
  readonly olderAre: 'gone' | 'not-read';
}

export interface RepositoryLog {
  /** Newest first. */
  readonly entries: readonly LogEntry[];
  readonly beginnings: readonly LogBeginning[];
  readonly missing: readonly { readonly role: string; readonly versions: readonly number[] }[];
  readonly online: readonly OnlineSummary[];
  readonly problems: readonly LogProblem[];
}

export interface LogOptions {
  readonly repository: string;
  /** The directory with the publisher's copy of the root. Without it, the first root in the repository is trusted. */
  readonly keysDirectory?: string | undefined;
  readonly clock: Clock;
  readonly bounds?: LogBounds;
}

/**
 * @returns the signed versions, newest first; roles without version 1, lost versions, and `problems` for files that do not verify
 * @throws WritError REPOSITORY_INVALID without a first root, another code if that root does not verify; DISK_*. Writes nothing
 */
export function readRepositoryLog({
  repository,
  keysDirectory,
  clock,
  bounds = defaultLogBounds,
}: LogOptions): RepositoryLog {
  const layout = layoutOf(repository);
  const reading = openLogReading(layout, clock, bounds);
  const roots = readLogRoots(reading, keysDirectory);
  const timestamps = onlineVersions(reading, 'timestamp', { roots, named: new Map() });
  const found = onlineVersions(reading, 'snapshot', { roots, named: namedBy(timestamps) });
  const restarts = restartsIn(timestamps, found);
  const snapshots = found.toSorted((a, b) => compareSigning(restarts.get('snapshot'), a.version, b.version));
  const named = namedBy(snapshots);
  const vouchingFor = (role: string, authorities: readonly PastAuthority[]): Vouching => {
    return { authorities, named, restart: restarts.get(role) };
  };
  const targets = readLogVersions(reading, 'targets', vouchingFor('targets', listTargetsAuthorities(roots)));
  const authorities = listTeamAuthorities(targets.versions);
  const teams = teamsOf(layout, authorities.keys()).map((role) => {
    return { role, read: readLogVersions(reading, role, vouchingFor(role, authorities.get(role) ?? [])) };
  });
  const versions = { live: liveVersions(timestamps, snapshots), snapshots };
  const seenInTeams = teams.flatMap(({ role, read }) => listSeenReleases(role, read.versions, versions));
  const seenInTargets = listSeenReleases('targets', targets.versions, versions);
  const newest = targets.versions.at(-1)?.file;
  const delegated = new Set(newest === undefined ? [] : delegatedRolesOf(newest).map(({ name }) => name));
  const releases = new Set([...seenInTargets, ...seenInTeams]);
  const next = new Set(releaseActs({}, newest?.signed.targets ?? {}).map(describeRelease));
  const seen: SeenMetadata = { ...versions, releases, delegated, next };
  const roles = [{ role: 'targets', read: targets }, ...teams];
  const entries = [
    ...rootEntries(roots),
    ...targetsEntries(targets, seen, seenInTeams),
    ...teams.flatMap(({ role, read }) => teamEntries(role, read, targets.versions, seen)),
  ];
  return {
    entries: newestFirst(entries),
    beginnings: [...rootBeginning(roots), ...roles.flatMap(({ role, read }) => beginningOf(role, read))],
    missing: roles.flatMap(({ role, read }) =>
      read.missing.length === 0 ? [] : [{ role, versions: read.missing }],
    ),
    online: [...onlineSummary('snapshot', snapshots), ...onlineSummary('timestamp', timestamps)],
    problems: reading.problems,
  };
}

const maxTeams = 1000;

/** @returns the delegated roles that a retained delegation names, and roles that have only files */
function teamsOf(layout: RepositoryLayout, named: Iterable<string>): string[] {
  const others = rolesOnDisk(layout).filter(
    (name) => !['root', 'snapshot', 'targets', 'timestamp'].includes(name),
  );
  return [...new Set([...named, ...others])].sort().slice(0, maxTeams);
}

function rootBeginning(roots: readonly LogVersion<'root'>[]): LogBeginning[] {
  const version = roots[0]?.version ?? 1;
  return version === 1 ? [] : [{ role: 'root', version, olderAre: 'not-read' }];
}

function beginningOf(role: string, { first, olderAre, versions }: RoleVersions): LogBeginning[] {
  if (olderAre === undefined) return [];
  const version = versions[0]?.version ?? first;
  return version === undefined ? [] : [{ role, version, olderAre }];
}

function rootEntries(roots: readonly LogVersion<'root'>[]): LogEntry[] {
  return roots.flatMap((root, index) => {
    const before = roots[index - 1];
    // The changes of the first trusted root are unknown, because its predecessor was not verified.
    if (before === undefined && root.version !== 1) return [];
    return [entryOf('root', root, rootAct(before?.file.signed, root.file.signed))];
  });
}

interface SeenVersions {
  readonly live: Live;
  /** Oldest first. */
  readonly snapshots: readonly LogVersion<'snapshot'>[];
}

interface SeenMetadata extends SeenVersions {
  /** The releases of all versions that hosts saw, in the form of describeRelease. */
  readonly releases: ReadonlySet<string>;
  /** The roles that the newest targets delegate to. */
  readonly delegated: ReadonlySet<string>;
  /** The releases of the newest targets, which hosts see now or after the next refresh. */
  readonly next: ReadonlySet<string>;
}

/** @returns the releases of the versions of a role that hosts saw, as texts for a comparison */
function listSeenReleases(role: string, versions: RoleVersions['versions'], seen: SeenVersions): string[] {
  const published = versions.filter(({ version }) => !isUnseenVersion(seen, role, version));
  return published
    .flatMap(({ file }) => releaseActs({}, file.signed.targets))
    .flatMap((act) => [describeRelease(act), describeWithdrawal(act)]);
}

function describeRelease({ bundle, channel, toSerial, revision }: ReleaseAct): string {
  return JSON.stringify([bundle, channel, toSerial, revision]);
}

/** Includes the withdrawal, because another key may sign another withdrawal with the same release. */
function describeWithdrawal(act: ReleaseAct): string {
  return JSON.stringify([describeRelease(act), act.withdrawn, act.reason]);
}

function targetsEntries(
  { versions }: RoleVersions,
  seen: SeenMetadata,
  seenInTeams: readonly string[],
): LogEntry[] {
  // The published releases of the teams and of earlier targets.
  const seenBefore = new Set(seenInTeams);
  return versions.flatMap((one, index) => {
    const before = versions[index - 1];
    for (const text of listSeenReleases('targets', before === undefined ? [] : [before], seen))
      seenBefore.add(text);
    if (before === undefined && one.version !== 1) return [];
    const { signed } = one.file;
    const given = handedOverBy(one.file);
    const handed = new Set(Object.values(given).flatMap(({ targets }) => Object.keys(targets)));
    const left = Object.entries(before?.file.signed.targets ?? {});
    // A release that a delegation handed over is not removed: another role lists it.
    const kept = left.filter(([path]) => !handed.has(path));
    const delegated = delegationActs(before?.file.signed, signed);
    const released = releaseActs(Object.fromEntries(kept), signed.targets);
    const isMoved = (act: ReleaseAct): boolean =>
      seenBefore.has(act.kind === 'withdraw' ? describeWithdrawal(act) : describeRelease(act));
    const acts = [...delegated, ...(delegated.length === 0 ? released : toMoves(released, isMoved))];
    return entriesOf('targets', one, { acts, before, seen });
  });
}

function teamEntries(
  role: string,
  { versions, restart }: RoleVersions,
  delegators: readonly LogVersion<'targets'>[],
  seen: SeenMetadata,
): LogEntry[] {
  return versions.flatMap((one, index) => {
    const before = versions[index - 1];
    if (before === undefined && one.version !== 1) return [];
    const received = handOverBefore(role, delegators, { version: one.version, restart });
    const isNewer =
      received !== undefined && compareSigning(restart, received.after, before?.version ?? 0) >= 0;
    // Hosts did not see a waiting version that the hand-over left out or included.
    const published = versions
      .slice(0, index)
      .findLast(({ version }) => !isUnseenVersion(seen, role, version))?.file.signed.targets;
    const base = isNewer
      ? Object.fromEntries(
          Object.entries(received.targets).map(([path, file]) => [path, published?.[path] ?? file]),
        )
      : (before?.file.signed.targets ?? {});
    const acts = releaseActs(base, one.file.signed.targets);
    return entriesOf(role, one, { acts, before, seen, ...(isNewer ? { handedOver: true } : {}) });
  });
}

/** @returns the last hand-over to a role before the role signed a version */
function handOverBefore(
  role: string,
  delegators: readonly LogVersion<'targets'>[],
  { version, restart }: { readonly version: number } & Pick<RoleVersions, 'restart'>,
) {
  const all = delegators.flatMap(({ file }) => {
    const given = handedOverBy(file);
    const one = Object.hasOwn(given, role) ? given[role] : undefined;
    return one !== undefined && compareSigning(restart, one.after, version) < 0 ? [one] : [];
  });
  return all.at(-1);
}

interface Acted {
  readonly acts: readonly LogAct[];
  readonly before: LogVersion<'targets'> | undefined;
  readonly seen: SeenMetadata;
  /** The version was compared with the hand-over to its role. */
  readonly handedOver?: true;
}

function entriesOf(role: string, one: LogVersion<'targets'>, acted: Acted): LogEntry[] {
  const { acts, before, seen, handedOver } = acted;
  const isResign = acts.length === 0 && one.version > 1;
  const all: readonly LogAct[] = isResign ? [{ kind: 're-sign', ...given({ handedOver }) }] : acts;
  const since = before === undefined || before.version === one.version - 1 ? {} : { since: before.version };
  const isUnseen = isUnseenVersion(seen, role, one.version);
  const isRemoved = role !== 'targets' && !seen.delegated.has(role);
  const isWaiting = isUnseen && !isRemoved && one.version > (seen.live.get(role) ?? 0);
  const waiting = isWaiting ? ({ waiting: true } as const) : {};
  const isSkipped = !isWaiting && isUnseen;
  // The usual skipped version is the first of two before one refresh: the next version publishes its act.
  const isNeverLive = (act: LogAct): boolean =>
    isSkipped &&
    'toSerial' in act &&
    !seen.releases.has(describeRelease(act)) &&
    !seen.next.has(describeRelease(act));
  return all.map((act) => ({
    ...entryOf(role, one, act),
    ...since,
    ...waiting,
    ...(isNeverLive(act) ? { neverLive: true } : {}),
  }));
}

function entryOf(
  role: string,
  { version, signedAtMs, signers }: LogVersion<'root' | 'targets'>,
  act: LogAct,
): LogEntry {
  return { role, version, ...(signedAtMs === undefined ? {} : { signedAtMs }), signers, act };
}

/** Sorts by signing time. A version without one keeps its order relative to its neighbours. */
function newestFirst(entries: readonly LogEntry[]): LogEntry[] {
  const placed = entries.map((entry, index) => ({ entry, index, atMs: entry.signedAtMs ?? 0 }));
  return placed.sort((a, b) => b.atMs - a.atMs || b.index - a.index).map(({ entry }) => entry);
}
