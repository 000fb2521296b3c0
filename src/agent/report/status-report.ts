// The report of `writ status`: joins the ledger, the active generation, the trusted metadata and the activity of the agent. Reads only;
// works with and without an agent.
import * as fs from 'node:fs';
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { withoutUndefined } from '../../core/given.js';
import type { StatusReport, WorkerStatus } from '../../core/status/status.js';
import { ownProxyUses } from '../../platform/net/proxies.js';
import type { ActiveReleases } from '../generations/generation-contents.js';
import { listCurrentDamage } from '../integrity/current-damage.js';
import { changesTo } from '../notify/notify-verbs.js';
import { groupOf } from '../notify/worker-ledger.js';
import { waitingNow } from '../select/waits.js';
import { pauseNow } from '../select/why-not-now-rules.js';
import { areWorkersConfirmed } from '../state/confirmed-workers.js';
import type { Ledger } from '../state/ledger.js';
import { findCurrentProblems } from './current-problems.js';
import { refusalMembers } from './refusal-status.js';
import { type AgentFacts, type HostView, readFacts } from './status-facts.js';
import { type ActiveBasis, groupStatus, workerStatus } from './worker-status.js';

/** @returns the report. An unreadable part becomes a problem of the report; it throws nothing for it */
export function statusReport(host: HostView, agent: AgentFacts): StatusReport {
  const facts = readFacts(host, agent);
  const { active, ledger, nowMs } = facts;
  const basis = facts.vanished === undefined && active !== undefined ? activeBasis(host, active) : undefined;
  const workers = Object.entries(ledger.workers).map(([key, entry]) =>
    workerStatus(key, entry, {
      provenAtMs: agent.provenAtMs?.get(key),
      active: basis,
      group: host.config.workers.find(({ name }) => name === groupOf(key)),
    }),
  );
  return withoutUndefined<StatusReport>({
    schema: 1,
    type: 'status.result',
    version: agent.version,
    host: host.config.host.id,
    labels: Object.keys(host.config.host.labels).length === 0 ? undefined : host.config.host.labels,
    atMs: nowMs,
    agent: agent.state,
    last: agent.last && lastOf(agent.last),
    confirmed: basis !== undefined && areWorkersConfirmed(host) && workers.every(isOfActive),
    generation: active?.generation.number,
    // The link's own time is the time of the swap.
    activatedAtMs: active && Math.round(fs.lstatSync(host.paths.current).mtimeMs),
    bundles: facts.bundles,
    observation: agent.observation,
    workers,
    groups: unlessEmpty(groupStatus(host, active)),
    freshness: facts.freshness,
    clock: facts.clock,
    nextPollAtMs: agent.nextPollAtMs,
    downloading: agent.downloading,
    mirrors: mirrorsOf(host),
    trust: facts.trust,
    untrusted: unlessEmpty(facts.untrusted),
    held: unlessEmpty(agent.held),
    ...{ scrub: scrubOf(host, ledger), sandbox: sandboxOf(host) },
    ...refusalMembers(facts.refusals),
    holds: ledger.holds.map(({ manifestDigest: _, ...one }) => one),
    pause: pauseNow(ledger, nowMs),
    waiting: unlessEmpty(waitingNow(ledger, nowMs)),
    fleet: agent.fleet,
    proxies: unlessEmpty(ownProxyUses(host.config)),
    logLosses: agent.logLosses?.lines === 0 ? undefined : agent.logLosses,
    problems: findCurrentProblems(facts, agent),
  });
}

/** A confirmation of another generation does not count for the active one. */
function isOfActive({ state, provenAtMs }: WorkerStatus): boolean {
  return state !== 'confirmed' || provenAtMs !== undefined;
}

function activeBasis(host: HostView, { generation: { number } }: ActiveReleases): ActiveBasis {
  return { generation: number, changedSince: changesTo(host, number) };
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
  // A scan of an empty host counts as none.
  if (scrub === undefined || scrub.counts.looks === 0) return undefined;
  const { atMs, outcome, found, counts } = scrub;
  return { atMs, outcome, found, counts, damage: listCurrentDamage(host) };
}

function mirrorsOf({ client }: HostView): StatusReport['mirrors'] {
  const mirrors = client.mirrors?.() ?? [];
  return mirrors.length < 2 || mirrors.every((one) => one.state === 'idle') ? undefined : mirrors;
}
