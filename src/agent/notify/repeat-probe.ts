// Repeats the probe of one group between moves and records what repeated-probe-rules decides. Sends no notification: reconcile
// notifies the workers that become pending. A probe may hang, so it runs outside the job lock, and its answer is recorded under
// the lock.
import { isDeepStrictEqual } from 'node:util';
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { orUndefined } from '../../core/errors.js';
import { findProcess } from '../../platform/process/processes.js';
import { readActive, readGeneration } from '../generations/generations.js';
import type { HookReport } from '../hooks/hook.js';
import { probeGapMs } from '../settled/probe-gap-rules.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import type { NotifyContext, ReconcileOptions } from './notify-context.js';
import { isWorkerProbe, type ProbeRequest, runGroupProbe } from './probe-workers.js';
import {
  afterFailedProbe,
  afterPassedProbe,
  afterProbeWithoutVerdict,
  type FailedProbe,
  hasOpenProbe,
  isProbedAgain,
  isSecondProbeDue,
  isSuspect,
} from './repeated-probe-rules.js';
import { groupOf, withWorkers, workerOf } from './worker-ledger.js';

export interface RepeatedProbe {
  /** Keys of the workers that the probe confirmed. */
  readonly proven: readonly string[];
  /** Workers that became suspect now (`doubted: 'yes'`), or are no longer suspect. */
  readonly changed: readonly {
    readonly key: string;
    readonly text: string;
    readonly doubted: 'yes' | 'no';
  }[];
}

const maxTextCharacters = 500;

/** The report of a probe, and the ledger entries of its workers at its start. */
export interface ProbeAnswer {
  readonly about: ReadonlyMap<string, WorkerLedger>;
  readonly report: HookReport;
  /** The probe timed out, although its workers run and their release is in its bake time. */
  readonly isOverdue: boolean;
}

type RepeatContext = Pick<NotifyContext, 'target' | 'staging' | 'signal'>;

/**
 * Runs the probe of a group once, or once for each worker. A failure is not retried here, because the next repetition
 * does that. Writes nothing.
 * @param asked the active generation, the staging directory of the command and the signal that ends it
 * @returns the answers; empty without a worker to probe
 */
export async function runRepeatedProbe(
  host: Host,
  group: WorkerGroup,
  asked: RepeatContext,
): Promise<ProbeAnswer[]> {
  const { config } = group;
  const { probe } = config;
  const workers = workersToProbe(host, config);
  if (probe === undefined || workers.length === 0) return [];
  const answers: ProbeAnswer[] = [];
  for (const about of isWorkerProbe(probe) ? workers.map((one) => [one]) : [workers]) {
    const names = about.map(([key]) => workerOf(key));
    const report = await probeAcceptedGenerations(host, group, { probe, workers: names, asked, about });
    // A probe that the stop request interrupted has no verdict.
    if (asked.signal.aborted) break;
    answers.push({
      about: new Map(about),
      report,
      isOverdue: await isOverdue(host, group, { about, report }),
    });
  }
  return answers;
}

interface RepeatedQuestion extends ProbeRequest {
  readonly asked: RepeatContext;
  readonly about: readonly [string, WorkerLedger][];
}

/**
 * Probes the generations that are acceptable: that of the last notification, and the active one. If the last move changed
 * nothing that a group uses, its workers correctly show the path of an older generation.
 * @returns the first passed probe, or else the last failed one
 */
async function probeAcceptedGenerations(
  host: Host,
  group: WorkerGroup,
  { asked, about, ...question }: RepeatedQuestion,
): Promise<HookReport> {
  const context: NotifyContext = { ...asked, groups: [group], nextNotificationId: () => '' };
  const earlier = [...new Set(about.map(([, { wanted }]) => wanted))]
    .filter((wanted) => wanted !== asked.target.generation)
    .sort((one, other) => other - one);
  for (const generation of earlier) {
    const path = orUndefined(() => readGeneration(host.paths, generation).path);
    if (path === undefined) continue;
    const report = await runGroupProbe(host, group, question, { ...context, target: { generation, path } });
    if (report.verdict.kind === 'ok' || asked.signal.aborted) return report;
  }
  return runGroupProbe(host, group, question, context);
}

/**
 * A timeout gives no verdict, but within a bake time it counts as a failed probe, because a release may keep a worker too busy
 * to answer. It does not count if a process has ended, or is stopped (adr/0058), which runGroupProbe reports.
 */
async function isOverdue(
  host: Host,
  { config, driver }: WorkerGroup,
  { about, report }: { readonly about: readonly [string, WorkerLedger][]; readonly report: HookReport },
): Promise<boolean> {
  const { bakes = {} } = host.ledger.read();
  if (report.verdict.isTimedOut !== true || !config.uses.some((bundle) => bakes[bundle] !== undefined))
    return false;
  for (const [key] of about) {
    const pid = await driver?.pid?.(workerOf(key));
    if (driver?.pid !== undefined && (pid === undefined || findProcess(pid) === undefined)) return false;
  }
  return true;
}

/**
 * Records what follows from the answers. Ignores an answer if an entry of its workers changed since the probe started.
 * @param minGapMs least time between two failures that count; absent: each counts, because the probe runs on its own timer
 * @throws WritError STATE_DAMAGED
 */
export function noteProbeAnswers(
  host: Host,
  { config }: Pick<WorkerGroup, 'config'>,
  answers: readonly ProbeAnswer[],
  minGapMs?: number,
): RepeatedProbe {
  const changed: RepeatedProbe['changed'][number][] = [];
  const proven: string[] = [];
  // A failed probe counts even if the disk cannot store it, because it may cause an automatic rollback.
  using _ = host.ledger.tolerateDiskErrors(() => false);
  for (const { about, report, isOverdue } of answers) {
    const { workers } = host.ledger.read();
    if (![...about].every(([key, before]) => isDeepStrictEqual(workers[key], before))) continue;
    changed.push(...noteProbeAnswer(host, [...about.keys()], { report, config, isOverdue, minGapMs }));
    if (report.verdict.kind === 'ok') proven.push(...about.keys());
  }
  return { proven: proven.filter((key) => isConfirmed(host, key)), changed };
}

/** Records that the probe could not run, for example without free space. @throws WritError STATE_DAMAGED */
export function noteSkippedProbe(host: Host, { config }: Pick<WorkerGroup, 'config'>, reason: string): void {
  const nowMs = host.clock.nowMs();
  const text = `${config.name}: could not be asked: ${reason}`.slice(0, maxTextCharacters);
  const unasked = workersToProbe(host, config).map(([key, one]): [string, WorkerLedger] => [
    key,
    afterProbeWithoutVerdict(one, text, nowMs),
  ]);
  using _ = host.ledger.tolerateDiskErrors(() => false);
  host.ledger.write(withWorkers(host.ledger.read(), unasked));
}

/** Runs the probe and records its answer; the caller holds the job lock. @throws WritError DISK_*, STATE_DAMAGED */
export async function repeatAndNoteProbe(
  host: Host,
  group: WorkerGroup,
  { minGapMs, ...asked }: RepeatContext & Pick<FailedProbe, 'minGapMs'>,
): Promise<RepeatedProbe> {
  return noteProbeAnswers(host, group, await runRepeatedProbe(host, group, asked), minGapMs);
}

/**
 * In a cycle: repeats the probes that failed, gave no verdict, or have a due second probe. Otherwise the finding of a group
 * without `every` would remain until the next release.
 * @param options.ignoreBackoff also repeat probes that have their own timer (`every`), because an operator requested it
 */
export async function retryOpenProbes(
  host: Host,
  { staging, ignoreBackoff, signal }: Pick<ReconcileOptions, 'staging' | 'ignoreBackoff' | 'signal'>,
): Promise<void> {
  const active = readActive(host.paths);
  if (active === undefined) return;
  const target = { generation: active.number, path: active.path };
  for (const group of host.groups) {
    const { name, probe } = group.config;
    const { workers } = host.ledger.read();
    const isOpenHere = Object.entries(workers).some(
      ([key, one]) =>
        groupOf(key) === name && (hasOpenProbe(one) || isSecondProbeDue(one, host.clock.nowMs())),
    );
    if (probe === undefined || !isOpenHere || (!ignoreBackoff && probe.everyMs !== undefined)) continue;
    // Failures count at most once per interval of the probe, however often an operator pulls.
    const minGapMs = probeGapMs(host.config, host.ledger.read(), group.config, probe.everyMs);
    await repeatAndNoteProbe(host, group, { target, staging: staging(), signal, minGapMs });
  }
}

/** @returns the workers that became suspect, or are no longer suspect */
function noteProbeAnswer(
  host: Host,
  about: readonly string[],
  {
    report,
    config,
    isOverdue,
    minGapMs,
  }: Pick<ProbeAnswer, 'report' | 'isOverdue'> &
    Pick<FailedProbe, 'minGapMs'> & { readonly config: WorkerGroupConfig },
): RepeatedProbe['changed'] {
  const ledger = host.ledger.read();
  const known = about.flatMap((key): [string, WorkerLedger][] => {
    const worker = ledger.workers[key];
    return worker === undefined ? [] : [[key, worker]];
  });
  // If the workers must use different generations, any of them may have answered, so the answer cannot confirm a new worker.
  const isOfAll = new Set(known.map(([, { wanted }]) => wanted)).size === 1;
  const covered = known.filter(([, one]) => isOfAll || one.state === 'confirmed' || isSuspect(one));
  const text = answerText(isWorkerProbe(config.probe) ? (about[0] ?? '') : config.name, report);
  const failure = {
    text,
    nowMs: host.clock.nowMs(),
    minGapMs,
    canBeNotified: config.reset !== undefined,
  };
  const next = covered.map(([key, one]): [string, WorkerLedger] => [
    key,
    applyAnswer(one, { verdict: report.verdict, isOverdue }, failure),
  ]);
  host.ledger.write(withWorkers(ledger, next));
  return next.flatMap(([key, after], index) => {
    const doubted = isSuspect(after) ? 'yes' : 'no';
    const before = covered[index]?.[1];
    const hasChanged = before !== undefined && isSuspect(before) !== isSuspect(after);
    return hasChanged ? [{ key, text: after.text, doubted }] : [];
  });
}

function isConfirmed(host: Host, key: string): boolean {
  return host.ledger.read().workers[key]?.state === 'confirmed';
}

function workersToProbe(host: Host, { name }: WorkerGroupConfig): [string, WorkerLedger][] {
  const own = Object.entries(host.ledger.read().workers).filter(([key]) => groupOf(key) === name);
  return own.filter(([, worker]) => isProbedAgain(worker));
}

function answerText(subject: string, { verdict: { reason }, text }: HookReport): string {
  const output = text === reason || text === '' ? '' : `: ${text}`;
  return `${subject}: ${reason}${output}`.slice(0, maxTextCharacters);
}

function applyAnswer(
  worker: WorkerLedger,
  { verdict, isOverdue }: Pick<HookReport, 'verdict'> & Pick<ProbeAnswer, 'isOverdue'>,
  failure: FailedProbe,
): WorkerLedger {
  if (verdict.kind === 'ok') return afterPassedProbe(worker, failure.nowMs);
  // A timeout counts only if this release passed the probe before, because the probe itself may be wrong.
  const isWrong = verdict.kind === 'refused' || (isOverdue && worker.confirmed === worker.wanted);
  return isWrong
    ? afterFailedProbe(worker, failure)
    : afterProbeWithoutVerdict(worker, failure.text, failure.nowMs);
}
