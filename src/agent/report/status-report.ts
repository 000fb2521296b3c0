// What `writ status` shows: the ledger, what is active, what was trusted and what the agent is doing, joined
// into one report. Reads only; with an agent or without one.
import * as fs from 'node:fs';
import type { BundleConfig } from '../../core/config/config.js';
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { type ErrorCode, errorCodes } from '../../core/error-codes.js';
import { isUnsaidNo, WritError } from '../../core/errors.js';
import { withoutUndefined } from '../../core/given.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { staleError } from '../../core/status/freshness.js';
import type {
  AgentState,
  BundleStatus,
  Downloading,
  HeldStatus,
  RememberedRefusal,
  StatusReport,
} from '../../core/status/status.js';
import { standingWorkerCodes } from '../../core/status/worker-rules.js';
import { clockWarnings } from '../../trust/trust-report.js';
import { type ContactMemory, freshnessOf } from '../freshness/contact-memory.js';
import { type ActiveReleases, readActiveReleases } from '../generations/generation-contents.js';
import { findUntrusted, untrustedProblems } from '../generations/vouching.js';
import { damageProblems, damageStanding } from '../integrity/standing-damage.js';
import { pendingProblems } from '../notify/pending-problems.js';
import { waitingNow } from '../select/waits.js';
import { pauseNow, waitError } from '../select/why-not-now-rules.js';
import type { Host } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';
import { isProven } from '../state/proven.js';
import { isRemembered, refusalMembers, rememberedRefusals } from './refusal-status.js';
import { areKnown, groupStatus, workerStatus } from './worker-status.js';

/** What only a running agent knows. */
export interface AgentFacts {
  readonly version: string;
  readonly state: AgentState;
  readonly last?: CycleResult | undefined;
  readonly contact: ContactMemory;
  readonly nextPollAtMs?: number | undefined;
  readonly downloading?: Downloading | undefined;
  /** When a repeated probe last showed that a worker uses what it is to use, by its key. */
  readonly provenAtMs?: ReadonlyMap<string, number>;
  /** What collection keeps for its holders alone. */
  readonly held?: readonly HeldStatus[];
  /** What the agent met outside a cycle, as a damaged tree at its start; undefined for what is over. */
  readonly problems: readonly (Problem | undefined)[];
}

/** The parts of a host that a report is made of; a host without an agent has them too. */
export interface HostView extends Pick<Host, 'config' | 'paths' | 'ledger' | 'refusals'> {
  readonly clock: Pick<Host['clock'], 'nowMs'>;
  readonly sandbox?: Pick<Host['sandbox'], 'status'>;
  readonly client: Pick<Host['client'], 'status' | 'knownTarget' | 'stillVerifies'> &
    Partial<Pick<Host['client'], 'mirrors'>>;
}

/** @returns the report; a part that cannot be read is a problem in it, never an exception */
export function statusReport(host: HostView, agent: AgentFacts): StatusReport {
  const facts = readFacts(host, agent);
  const { active, ledger, nowMs } = facts;
  return withoutUndefined<StatusReport>({
    schema: 1,
    type: 'status.result',
    version: agent.version,
    host: host.config.host.id,
    atMs: nowMs,
    agent: agent.state,
    last: agent.last && lastOf(agent.last),
    confirmed: active !== undefined && isProven(host),
    generation: active?.generation.number,
    // The link's own time is the time of the swap.
    activatedAtMs: active && Math.round(fs.lstatSync(host.paths.current).mtimeMs),
    bundles: facts.bundles,
    workers: Object.entries(ledger.workers).map(([key, entry]) =>
      workerStatus(key, entry, agent.provenAtMs?.get(key)),
    ),
    groups: unlessEmpty(groupStatus(host, active)),
    freshness: facts.freshness,
    clock: facts.clock,
    nextPollAtMs: agent.nextPollAtMs,
    downloading: agent.downloading,
    mirrors: mirrorsOf(host),
    trust: facts.trust,
    untrusted: unlessEmpty(facts.untrusted),
    held: unlessEmpty(agent.held),
    scrub: scrubOf(host, ledger),
    sandbox: sandboxOf(host),
    ...refusalMembers(facts.refusals),
    holds: ledger.holds.map(({ manifestDigest: _, ...one }) => one),
    pause: pauseNow(ledger, nowMs),
    waiting: unlessEmpty(waitingNow(ledger, nowMs)),
    problems: currentProblems(facts, agent),
  });
}

/** What is read of a host for its report: each thing once. */
interface Facts extends Pick<StatusReport, 'bundles' | 'freshness' | 'trust'> {
  readonly host: HostView;
  readonly nowMs: number;
  readonly ledger: Ledger;
  readonly active: ActiveReleases | undefined;
  readonly clock: StatusReport['clock'] | undefined;
  readonly untrusted: NonNullable<StatusReport['untrusted']>;
  readonly damage: readonly Problem[];
  readonly refusals: readonly RememberedRefusal[];
  /** One for each thing that could not be read. */
  readonly unreadable: readonly Problem[];
}

function readFacts(host: HostView, { contact }: AgentFacts): Facts {
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
  return {
    ...{ host, nowMs: host.clock.nowMs(), ledger, active, unreadable },
    freshness: attempt(() => freshnessOf(host, contact), { state: 'stale' }),
    untrusted: attempt(() => findUntrusted(host), []),
    clock: attempt(() => clockOf(host), undefined),
    bundles: host.config.bundles.map((one) => {
      const offered = attempt(() => host.client.knownTarget(one.name, one.channel)?.release, undefined);
      return bundleStatus(one, offered, { active, ledger });
    }),
    trust: attempt(() => trustOf(host), []),
    damage: attempt(() => damageProblems(host), []),
    refusals: rememberedRefusals(host, active),
  };
}

interface Judge {
  /** Codes that are judged here alone: what the last cycle met of them may be over. */
  readonly codes: readonly ErrorCode[];
  /** @returns what is wrong now */
  readonly judge: (facts: Facts) => readonly Problem[];
}

const unsaid = (Object.keys(errorCodes) as ErrorCode[]).filter(isUnsaidNo);

const judges: readonly Judge[] = [
  // The last cycle names the releases that were kept off by it.
  { codes: [], judge: ({ ledger }) => blockProblems(ledger) },
  {
    codes: [...standingWorkerCodes],
    judge: ({ host, active }) => (active === undefined || !areKnown(host) ? [] : pendingProblems(host)),
  },
  { codes: ['REPAIRED_BY_PREVIOUS'], judge: ({ damage }) => damage },
  { codes: ['UNTRUSTED_ACTIVE'], judge: ({ untrusted }) => untrustedProblems(untrusted) },
  { codes: ['POLICY_STALE'], judge: staleProblems },
  { codes: ['CLOCK_BEHIND'], judge: clockProblems },
  // Said by the members `pause`, `waiting` and `refusals`.
  { codes: ['ACTIVATION_PAUSED', 'ACTIVATION_PACED', 'REMEMBERED_REFUSAL'], judge: () => [] },
  { codes: unsaid, judge: ({ ledger }) => silenceProblems(ledger) },
];

const judged: ReadonlySet<ErrorCode> = new Set(judges.flatMap(({ codes }) => codes));

/** What is wrong now: of the last cycle only what no judge knows better. */
function currentProblems(facts: Facts, { last, problems }: AgentFacts): Problem[] {
  const { ledger, refusals } = facts.host;
  const met = [...(last?.problems ?? []), ...problems].filter((one) => one !== undefined);
  return distinct([
    ...[ledger.found(), refusals.found()].filter((one) => one instanceof WritError).map(problemOf),
    // Damage that a look has found is notified as it stands; what a start or a cycle found damaged itself is not in the ledger.
    ...met.filter(
      (one) =>
        !judged.has(one.code) &&
        !(one.code === 'STATE_DAMAGED' && 'damage' in one.facts) &&
        !isEnded(one, facts.ledger) &&
        !isRemembered(one, facts.refusals, last),
    ),
    ...facts.unreadable,
    ...judges.flatMap(({ judge }) => judge(facts)),
  ]);
}

/** A person has ended what the last cycle met, or it ended by itself: the next one takes what it kept out. */
function isEnded({ code, facts }: Problem, { holds, blocked }: Ledger): boolean {
  const { bundle, serial } = facts;
  // A start that could not go back says so without facts: the ledger never had it.
  if (code === 'ACTIVATION_BLOCKED') return blocked === undefined && Object.keys(facts).length > 0;
  const isHeld = holds.some((one) => one.bundle === bundle && one.serial >= Number(serial));
  return code === 'RELEASE_HELD' && !isHeld;
}

/** A block is in the ledger and in the last cycle's result: it is one problem, notified with its words. */
function distinct(problems: readonly Problem[]): Problem[] {
  return problems.filter((one, index) => {
    const others = problems.filter((other, at) => other.code === one.code && at !== index);
    if (one.message === '') return !others.some((other) => other.message !== '');
    const firstAt = problems.findIndex((other) => other.code === one.code && other.message === one.message);
    return firstAt === index;
  });
}

function blockProblems({ blocked }: Ledger): Problem[] {
  if (blocked === undefined) return [];
  const { reason, atMs } = blocked;
  return [problemOf(new WritError('ACTIVATION_BLOCKED', reason, { facts: { atMs } }))];
}

/** What was met with silence is left out, and stands beside what is active until it is taken, or another one is. */
function silenceProblems({ waiting = {} }: Ledger): Problem[] {
  return Object.entries(waiting)
    .filter(([, { vain }]) => vain !== undefined && isUnsaidNo(vain.code))
    .map(([bundle, wait]) => problemOf(waitError(bundle, wait)));
}

function staleProblems({ freshness, host }: Facts): Problem[] {
  if (freshness.overdueSinceMs === undefined) return [];
  return [problemOf(staleError(freshness, host.config.freshness.maxStaleMs))];
}

function unlessEmpty<T>(list: readonly T[] = []): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

function lastOf({ cycle, trigger, outcome, startedAtMs, durationMs }: CycleResult): StatusReport['last'] {
  return { cycle, trigger, outcome, atMs: startedAtMs + durationMs };
}

function sandboxOf({ sandbox }: HostView): StatusReport['sandbox'] {
  const status = sandbox?.status();
  return status?.state === 'unknown' ? undefined : status;
}

function scrubOf(host: HostView, { scrub }: Ledger): StatusReport['scrub'] {
  // Where there was nothing yet, nobody has looked over it.
  if (scrub === undefined || scrub.counts.looks === 0) return undefined;
  const { atMs, outcome, found, counts } = scrub;
  return { atMs, outcome, found, counts, damage: damageStanding(host) };
}

function bundleStatus(
  { name, channel }: BundleConfig,
  offered: ReleaseInfo | undefined,
  { active, ledger }: Pick<Facts, 'active' | 'ledger'>,
): BundleStatus {
  const record = active?.records.get(name);
  // Its link names it also where its record is lost.
  const tree = active?.generation.entries.find((one) => one.bundle === name)?.tree;
  return withoutUndefined<BundleStatus>({
    bundle: name,
    channel,
    serial: tree?.serial,
    revision: record?.release.revision,
    activatedAtMs: record && (ledger.activatedAtMs?.[name] ?? record.stagedAtMs),
    server: offered && { serial: offered.serial, revision: offered.revision },
  });
}

function mirrorsOf({ client }: HostView): StatusReport['mirrors'] {
  const mirrors = client.mirrors?.() ?? [];
  return mirrors.length < 2 || mirrors.every((one) => one.state === 'idle') ? undefined : mirrors;
}

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

/** As of now: it is gone as soon as the clock is right. */
function clockOf({ client, clock }: HostView): StatusReport['clock'] {
  const floorMs = client.status()?.clockFloorMs;
  const [warning] = clockWarnings(floorMs, clock.nowMs());
  if (floorMs === undefined || warning === undefined) return undefined;
  return { floorMs, behindMs: warning.facts.behindMs };
}

function clockProblems({ clock, nowMs }: Facts): Problem[] {
  return clockWarnings(clock?.floorMs, nowMs).map(({ code, message, facts }) =>
    problemOf(new WritError(code, message, { facts })),
  );
}
