// Gathers the facts of a host for its status report and reads each source once. An unreadable part becomes a problem, and no exception.
// Decides nothing: current-problems judges the facts.
import type { BundleConfig } from '../../core/config/config.js';
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { given, withoutUndefined } from '../../core/given.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { withdraws } from '../../core/release/withdrawn.js';
import type {
  AgentState,
  BundleStatus,
  CommandObservation,
  DownloadedBytes,
  FleetStatus,
  GenerationUserStatus,
  LogLosses,
  RememberedRefusal,
  StatusReport,
} from '../../core/status/status.js';
import { clockWarnings } from '../../trust/trust-report.js';
import { type ContactMemory, freshnessOf } from '../freshness/contact-memory.js';
import { missedNow } from '../freshness/missed-releases.js';
import { type ActiveReleases, readActiveReleases } from '../generations/generation-contents.js';
import type { ReleaseRecord } from '../generations/release-records.js';
import { findUntrusted } from '../generations/untrusted-releases.js';
import { damageProblems } from '../integrity/current-damage.js';
import type { Host } from '../state/host.js';
import type { AcceptedRelease, Ledger } from '../state/ledger.js';
import { type BakeFacts, bakeStatus } from './bake-status.js';
import { rememberedRefusals } from './refusal-status.js';

/** Facts that only a running agent has. */
export interface AgentFacts {
  readonly version: string;
  readonly state: AgentState;
  readonly last?: CycleResult | undefined;
  readonly contact: ContactMemory;
  readonly nextPollAtMs?: number | undefined;
  readonly downloading?: DownloadedBytes | undefined;
  /** When a repeated probe last confirmed a worker, epoch milliseconds, by the worker's key. */
  readonly provenAtMs?: ReadonlyMap<string, number>;
  /** Generations that are retained only because a process uses them. */
  readonly held?: readonly GenerationUserStatus[];
  /** The connection to the fleet server; left out without one. */
  readonly fleet?: FleetStatus | undefined;
  /** Lost lines of the log; undefined if it is not on stderr. */
  readonly logLosses?: LogLosses | undefined;
  /** The observation of bake times by a command without an agent; left out without such a command. */
  readonly observation?: CommandObservation | undefined;
  /** Problems outside of a cycle, such as a damaged tree at the start; undefined for those that are over. */
  readonly problems: readonly (Problem | undefined)[];
}

/** The parts of a host that a report needs, available with and without an agent. */
export interface HostView extends Pick<Host, 'config' | 'paths' | 'ledger' | 'refusals' | 'features'> {
  readonly clock: Pick<Host['clock'], 'nowMs'>;
  readonly sandbox?: Pick<Host['sandbox'], 'status'>;
  /** Only of a running agent. */
  readonly restoreMemory?: Host['restoreMemory'];
  /** Left out if the state directory was not compared with its mark. */
  readonly stateMark?: Pick<NonNullable<Host['stateMark']>, 'findVanished'>;
  readonly client: Pick<Host['client'], 'status' | 'knownTarget' | 'stillVerifies'> &
    Partial<Pick<Host['client'], 'mirrors'>>;
}

/** The facts of a status report. */
export interface Facts extends Pick<StatusReport, 'bundles' | 'freshness' | 'trust'> {
  readonly host: HostView;
  readonly nowMs: number;
  readonly ledger: Ledger;
  /** True while an agent runs. */
  readonly isObserved: boolean;
  readonly active: ActiveReleases | undefined;
  readonly clock: StatusReport['clock'] | undefined;
  readonly untrusted: NonNullable<StatusReport['untrusted']>;
  readonly damage: readonly Problem[];
  readonly refusals: readonly RememberedRefusal[];
  /** A problem for each unreadable part. */
  readonly unreadable: readonly Problem[];
  /** Set if the state directory is not the original one. Then no remembered confirmation of a worker counts. */
  readonly vanished: Problem | undefined;
}

/** @returns the facts. An unreadable part is a problem in `unreadable`, and has its empty value (freshness: `stale`) */
export function readFacts(host: HostView, { contact, state, observation }: AgentFacts): Facts {
  const unreadable: Problem[] = [];
  const attempt = <T>(read: () => T, otherwise: T): T => {
    try {
      return read();
    } catch (error) {
      unreadable.push(problemOf(error));
      return otherwise;
    }
  };
  const active = attempt(() => readActiveReleases(host.paths), undefined);
  unreadable.push(...(active?.errors ?? []).map(problemOf));
  const ledger = host.ledger.read();
  const vanished = host.stateMark?.findVanished();
  const missed = attempt(() => missedNow(host), new Map());
  const isObserved = state !== 'stop';
  return {
    ...{ host, nowMs: host.clock.nowMs(), ledger, isObserved, active, unreadable },
    vanished: vanished && problemOf(vanished),
    freshness: attempt(() => freshnessOf(host, contact), { state: 'stale' }),
    untrusted: attempt(() => findUntrusted(host), []),
    clock: attempt(() => clockOf(host), undefined),
    bundles: host.config.bundles.map((one) => {
      const lag = missed.get(one.name);
      const offered = attempt(() => host.client.knownTarget(one.name, one.channel)?.release, undefined);
      const isObservedByCommand = observation?.bundles.includes(one.name) === true;
      const known = { active, ledger, isObserved: isObserved || isObservedByCommand };
      return { ...bundleStatus(host, one, offered, known), ...given({ missed: lag }) };
    }),
    trust: attempt(() => trustOf(host), []),
    damage: attempt(() => damageProblems(host), []),
    refusals: rememberedRefusals(host, active),
  };
}

function bundleStatus(
  host: HostView,
  { name, channel }: BundleConfig,
  offered: ReleaseInfo | undefined,
  { active, ledger, isObserved }: Pick<Facts, 'active' | 'ledger'> & Pick<BakeFacts, 'isObserved'>,
): BundleStatus {
  const nowMs = host.clock.nowMs();
  const record = active?.records.get(name);
  // The link names the serial even if the record is lost.
  const tree = active?.generation.entries.find((one) => one.bundle === name)?.tree;
  return withoutUndefined<BundleStatus>({
    bundle: name,
    channel,
    serial: tree?.serial,
    revision: record?.release.revision,
    activatedAtMs: record && (ledger.activatedAtMs?.[name] ?? record.stagedAtMs),
    server: offered && serverOf(offered),
    withdrawnBy: offered && withdraws(offered, record?.release) ? offered.serial : undefined,
    bake: record && bakeStatus(host, ledger, { bundle: name, release: releaseOf(record), nowMs, isObserved }),
  });
}

function releaseOf({ release: { serial, manifest } }: ReleaseRecord): AcceptedRelease {
  return { serial, manifestDigest: manifest.digest };
}

const serverOf = ({ serial, revision, requires, fixes }: ReleaseInfo): BundleStatus['server'] => ({
  ...{ serial, revision, ...given({ requires, fixes }) },
});

const roleOrder = ['timestamp', 'snapshot', 'targets', 'root'] as const;

function trustOf(host: HostView): StatusReport['trust'] {
  const { roles, delegated = {}, signedAtMs } = host.client.status() ?? {};
  if (roles === undefined) return [];
  const topLevel = roleOrder.flatMap((role) => {
    const signed = role === 'timestamp' && signedAtMs !== undefined ? { signedAtMs } : {};
    return roles[role] === undefined ? [] : [{ role, ...roles[role], ...signed }];
  });
  return [...topLevel, ...Object.entries(delegated).map(([role, one]) => ({ role, ...one }))];
}

/** @returns how far the clock is behind now; undefined as soon as it is correct */
function clockOf({ client, clock }: HostView): StatusReport['clock'] {
  const floorMs = client.status()?.clockFloorMs;
  const [warning] = clockWarnings(floorMs, clock.nowMs());
  if (floorMs === undefined || warning === undefined) return undefined;
  return { floorMs, behindMs: warning.facts.behindMs };
}
