// What `writ status` shows: the ledger, what is active, what was trusted and what the agent is doing, joined
// into one report. Reads only; with an agent or without one.
import * as fs from 'node:fs';
import type { BundleConfig } from '../../core/config/config.js';
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import type {
  AgentState,
  BundleStatus,
  StatusReport,
  UntrustedStatus,
  WorkerStatus,
} from '../../core/protocol/control-protocol.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { type FreshnessReport, staleError } from '../../core/status/freshness.js';
import type { HeldStatus } from '../../core/status/status.js';
import { clockWarnings } from '../../trust/trust-report.js';
import { type ContactMemory, freshnessOf } from '../freshness/contact-memory.js';
import { readActiveReleases } from '../generations/generation-contents.js';
import type { ReleaseRecord } from '../generations/release-records.js';
import { findUntrusted, untrustedProblems } from '../generations/vouching.js';
import { damageProblems, damageStanding } from '../integrity/standing-damage.js';
import { dueProblems } from '../notify/pending-problems.js';
import { groupOf, nextTellAtMs, workerOf } from '../notify/worker-ledger.js';
import { waitingNow } from '../select/pacing.js';
import { pauseNow } from '../select/pause.js';
import type { Host } from '../state/host.js';
import type { Ledger, WorkerLedger } from '../state/ledger.js';
import { isProven } from '../state/proven.js';

/** What only a running agent knows. */
export interface AgentFacts {
  readonly version: string;
  readonly state: AgentState;
  readonly last?: CycleResult;
  readonly contact: ContactMemory;
  readonly nextPollAtMs?: number;
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
export function statusReport(host: HostView, facts: AgentFacts): StatusReport {
  const files = [host.ledger.found(), host.refusals.found()].filter((one) => one instanceof WritError);
  const problems = [
    ...files.map(problemOf),
    ...[...(facts.last?.problems ?? []), ...facts.problems]
      .filter((one) => one !== undefined)
      .filter(isNotJudgedAnew),
  ];
  const attempt = <T>(read: () => T, otherwise: T): T => {
    try {
      return read();
    } catch (error) {
      problems.push(problemOf(toWritError(error)));
      return otherwise;
    }
  };
  const active = attempt(() => readActiveReleases(host.paths), undefined);
  const ledger = host.ledger.read();
  const workers = workerStatuses(ledger);
  const freshness = attempt(() => freshnessOf(host, facts.contact), { state: 'stale' });
  const untrusted = attempt(() => findUntrusted(host), []);
  const clock = attempt(() => clockOf(host), undefined);
  return {
    schema: 1,
    type: 'status.result',
    version: facts.version,
    host: host.config.host.id,
    atMs: host.clock.nowMs(),
    agent: facts.state,
    ...lastOf(facts.last),
    confirmed: active !== undefined && isProven(host),
    ...(active ? { generation: active.generation.number, activeSinceMs: activeSince(host) } : {}),
    bundles: host.config.bundles.map((one) =>
      bundleStatus(
        one,
        active?.records.get(one.name),
        ledger.activatedAtMs?.[one.name],
        attempt(() => offeredTo(host, one), undefined),
      ),
    ),
    workers,
    freshness,
    ...(clock === undefined ? {} : { clock }),
    ...(facts.nextPollAtMs === undefined ? {} : { nextPollAtMs: facts.nextPollAtMs }),
    ...mirrorsOf(host),
    trust: attempt(() => trustOf(host), []),
    ...(untrusted.length === 0 ? {} : { untrusted }),
    ...(facts.held === undefined || facts.held.length === 0 ? {} : { held: facts.held }),
    ...scrubOf(host, ledger),
    ...sandboxOf(host),
    refusals: host.refusals
      .read()
      .refusals.map(({ manifestDigest: _, tries: _tries, refusedWith: _with, message, ...one }) => ({
        ...one,
        reason: message,
      })),
    ...standing(ledger, host.clock.nowMs()),
    problems: distinct([
      ...problems,
      ...blockedProblem(ledger),
      ...(active === undefined ? [] : dueProblems(host)),
      ...attempt(() => damageProblems(host), []),
      ...presentProblems(host, { freshness, clock, untrusted }),
    ]),
  };
}

/** A block is in the ledger and in the last cycle's result: it is one problem, told with its words. */
function distinct(problems: readonly Problem[]): Problem[] {
  return problems.filter((one, index) => {
    const others = problems.filter((other, at) => other.code === one.code && at !== index);
    if (one.message === '') return !others.some((other) => other.message !== '');
    const firstAt = problems.findIndex((other) => other.code === one.code && other.message === one.message);
    return firstAt === index;
  });
}

function lastOf(last: CycleResult | undefined): Pick<StatusReport, 'last'> {
  if (last === undefined) return {};
  const { cycle, trigger, outcome, startedAtMs, durationMs } = last;
  return { last: { cycle, trigger, outcome, atMs: startedAtMs + durationMs } };
}

/** The link's own time is the time of the swap. */
function activeSince(host: HostView): number {
  return Math.round(fs.lstatSync(host.paths.current).mtimeMs);
}

function sandboxOf({ sandbox }: HostView): Pick<StatusReport, 'sandbox'> {
  const status = sandbox?.status();
  return status === undefined || status.state === 'unknown' ? {} : { sandbox: status };
}

function scrubOf(host: HostView, { scrub }: Ledger): Pick<StatusReport, 'scrub'> {
  if (scrub === undefined) return {};
  const { atMs, outcome, found, counts } = scrub;
  return { scrub: { atMs, outcome, found, counts, damage: damageStanding(host) } };
}

function offeredTo(host: HostView, { name, channel }: BundleConfig): ReleaseInfo | undefined {
  return host.client.knownTarget(name, channel)?.release;
}

function bundleStatus(
  { name, channel }: BundleConfig,
  active: ReleaseRecord | undefined,
  activatedAtMs: number | undefined,
  offered: ReleaseInfo | undefined,
): BundleStatus {
  return {
    bundle: name,
    channel,
    ...(active
      ? {
          serial: active.release.serial,
          revision: active.release.revision,
          activatedAtMs: activatedAtMs ?? active.stagedAtMs,
        }
      : {}),
    ...(offered ? { server: { serial: offered.serial, revision: offered.revision } } : {}),
  };
}

function workerStatuses(ledger: Ledger): WorkerStatus[] {
  return Object.entries(ledger.workers).map(([key, entry]) => workerStatus(key, entry));
}

function workerStatus(key: string, entry: WorkerLedger): WorkerStatus {
  const { process: _, appeared: _appeared, owed: _owed, toldAtMs, ...one } = entry;
  const nextMs = nextTellAtMs(entry);
  return {
    group: groupOf(key),
    worker: workerOf(key),
    ...one,
    ...(reached.has(one.state) ? { told: one.wanted } : {}),
    ...(reached.has(one.state) && toldAtMs !== undefined ? { toldAtMs } : {}),
    ...(nextMs === undefined ? {} : { nextTellAtMs: nextMs }),
    // What it last said is in the history; now it is awaited.
    ...(one.goneAtMs === undefined ? {} : { state: 'waiting', atMs: one.goneAtMs }),
  };
}

const reached: ReadonlySet<WorkerStatus['state']> = new Set(['confirmed', 'told', 'refused']);

const roleOrder = ['timestamp', 'snapshot', 'targets', 'root'] as const;

function mirrorsOf({ client }: HostView): Pick<StatusReport, 'mirrors'> {
  const mirrors = client.mirrors?.() ?? [];
  return mirrors.length < 2 || mirrors.every((one) => one.state === 'idle') ? {} : { mirrors };
}

function trustOf(host: HostView): StatusReport['trust'] {
  const { roles, delegated = {}, signedAtMs } = host.client.status() ?? {};
  if (roles === undefined) return [];
  const topLevel = roleOrder.flatMap((role) => {
    const one = roles[role];
    const signed = role === 'timestamp' && signedAtMs !== undefined ? { signedAtMs } : {};
    return one === undefined ? [] : [{ role, version: one.version, expiresAtMs: one.expiresAtMs, ...signed }];
  });
  return [...topLevel, ...Object.entries(delegated).map(([role, one]) => ({ role, ...one }))];
}

/** As of now: it is gone as soon as the clock is right. */
function clockOf(host: HostView): StatusReport['clock'] {
  const floorMs = host.client.status()?.clockFloorMs;
  const [warning] = clockWarnings(floorMs, host.clock.nowMs());
  if (floorMs === undefined || warning === undefined) return undefined;
  return { floorMs, behindMs: warning.facts.behindMs };
}

interface Present {
  readonly freshness: FreshnessReport;
  readonly clock: StatusReport['clock'];
  readonly untrusted: readonly UntrustedStatus[];
}

/** What keeps releases from being activated. */
function standing(ledger: Ledger, nowMs: number): Pick<StatusReport, 'holds' | 'pause' | 'waiting'> {
  const pause = pauseNow(ledger, nowMs);
  const waiting = waitingNow(ledger, nowMs);
  return {
    holds: ledger.holds.map(({ manifestDigest: _, ...one }) => one),
    ...(pause === undefined ? {} : { pause }),
    ...(waiting.length === 0 ? {} : { waiting }),
  };
}

const judgedAnew: ReadonlySet<Problem['code']> = new Set([
  'WORKER_UNREACHABLE',
  'WORKER_UNCONFIRMED',
  'WORKERS_MISSING',
  'ACTIVATION_PAUSED',
  'ACTIVATION_PACED',
  'UNTRUSTED_ACTIVE',
  'POLICY_STALE',
  'CLOCK_BEHIND',
  'REPAIRED_BY_PREVIOUS',
]);

/** Told as it is now, and not as the last cycle met it. */
function isNotJudgedAnew({ code, facts }: Problem): boolean {
  return !judgedAnew.has(code) && !(code === 'STATE_DAMAGED' && 'damage' in facts);
}

/** What is true now, whatever the last cycle met. */
function presentProblems(host: HostView, { freshness, clock, untrusted }: Present): Problem[] {
  return [
    ...untrustedProblems(untrusted),
    ...(freshness.overdueSinceMs === undefined
      ? []
      : [problemOf(staleError(freshness, host.config.freshness.maxStaleMs))]),
    ...clockWarnings(clock?.floorMs, host.clock.nowMs()).map(({ code, message, facts }) =>
      problemOf(new WritError(code, message, { facts })),
    ),
  ];
}

function blockedProblem(ledger: Ledger): Problem[] {
  if (ledger.blocked === undefined) return [];
  const { reason, atMs } = ledger.blocked;
  return [
    {
      code: 'ACTIVATION_BLOCKED',
      message: reason,
      hint: 'Mend the cause, then `writ resume`.',
      facts: { atMs },
    },
  ];
}
