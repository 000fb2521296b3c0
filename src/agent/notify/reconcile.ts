// Reconciles workers: notifies pending workers until each uses the active generation, new members included. Runs in a cycle
// without a new release, and between cycles on the timer of the agent. worker-action-rules decides the action for each worker.
import { bakeOf, defaultBake } from '../../core/config/config.js';
import type { Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { toWritError } from '../../core/errors.js';
import { defaultProbeDeadlineMs } from '../../core/limits.js';
import { affectsGroup } from '../../core/release/affected-groups.js';
import { readActive } from '../generations/generations.js';
import { probeGapMs } from '../settled/probe-gap-rules.js';
import { successorNoticeAtMs } from '../settled/successor-rules.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';
import { type NotifyReport, probeAfterNotify, probeBeforeNotify, problemsOf } from './confirm-by-probe.js';
import { successorNotifiableAtMs } from './dead-workers.js';
import { refreshMembers } from './membership.js';
import type { NotifyContext, ReconcileOptions } from './notify-context.js';
import { noteStep, notifyWorkers, resetWorkers, type StepNote } from './notify-steps.js';
import { changesTo, verbsTo } from './notify-verbs.js';
import { problemsIn, warningsIn, workerFindings } from './pending-problems.js';
import { asUnreachable, stillRefusesAll } from './repeated-refusal-rules.js';
import { runPendingLoaders, unloadedWithoutMembers } from './run-loaders.js';
import { type ActionOptions, nextWorkerActions, type WorkerAction } from './worker-action-rules.js';
import {
  acceptedGeneration,
  groupOf,
  hasAnswered,
  noteWorkers,
  type VerbOf,
  workerKey,
} from './worker-ledger.js';
import { recordedRefusal, resultsIn } from './worker-refusal.js';

export interface ReconcileResult {
  /** Results of the workers that were notified or confirmed by a probe. */
  readonly results: readonly WorkerResult[];
  /** The remaining problems; empty if every member accepted. */
  readonly problems: readonly Problem[];
  /** Findings that do not change an outcome, such as a worker that confirmed nothing. */
  readonly warnings: readonly Problem[];
  /** By group: the milliseconds that its driver took to list the members. */
  readonly readMs: ReadonlyMap<string, number>;
}

const nothing: ReconcileResult = { results: [], problems: [], warnings: [], readMs: new Map() };

/**
 * Refreshes the members, probes the workers that may already use the generation, and notifies the others. Each phase records
 * its results before the next begins. Never rejects because of a worker.
 * @throws WritError DISK_*, STATE_DAMAGED
 */
export async function reconcileWorkers(host: Host, options: ReconcileOptions): Promise<ReconcileResult> {
  const active = readActive(host.paths);
  if (active === undefined) return nothing;
  const { groups = host.groups, livenessCheck = 'all', ignoreBackoff, onRefused } = options;
  const readMs = await refreshMembers(host, { active: active.number, groups, livenessCheck });
  const target = { generation: active.number, path: active.path };
  const decide = (isAfterProbes: boolean): Actions => {
    const ledger = host.ledger.read();
    const verbOf = verbsTo(host, { to: active.number, workers: ledger.workers });
    const successorAtMs = createSuccessorDelay(host, ledger);
    const options = { nowMs: host.clock.nowMs(), ignoreBackoff, isAfterProbes, verbOf, successorAtMs };
    return nextWorkerActions(ledger, host.groups, options);
  };
  const toAsk = createNotifyContext(host, decide(false), ['probe'], { ...options, target });
  const proven = toAsk === undefined ? [] : await probeBeforeNotify(host, toAsk);
  noteWorkers(host, proven);
  const actions = decide(true);
  const toLoad = ignoreBackoff ? unloadedWithoutMembers(host.ledger.read()) : [];
  const toNotify = createNotifyContext(host, actions, ['notify', 'restart'], { ...options, target, toLoad });
  const notified: NotifyReport = toNotify === undefined ? nothing : await notifyPending(host, toNotify);
  noteWorkers(host, notified.results);
  const toRemind = createNotifyContext(host, actions, ['remind'], { ...options, target });
  const reminded = toRemind === undefined ? [] : await remindSuspects(host, toRemind);
  noteWorkers(host, reminded);
  // workerFindings reports each refusing worker from the ledger.
  const others = notified.problems.filter(
    ({ code }) => code !== 'WORKER_REFUSED' && code !== 'SILENT_REFUSAL',
  );
  const findings = workerFindings(host);
  const problems = [...others, ...problemsIn(findings)];
  const refusal = notified.refusal ?? recordedRefusal(host, active.number);
  if (refusal !== undefined) await onRefused?.(refusal);
  return {
    results: [...proven, ...notified.results, ...reminded],
    problems,
    warnings: warningsIn(findings),
    readMs,
  };
}

type Actions = ReturnType<typeof nextWorkerActions>;

function createSuccessorDelay(
  { config }: Host,
  { workers, runs = {}, bakes = {} }: Ledger,
): NonNullable<ActionOptions['successorAtMs']> {
  return ({ config: { uses } }, key) => {
    const starts = uses.flatMap((bundle) => bakes[bundle]?.startedAtMs ?? []);
    const noticeAtMs = successorNoticeAtMs(runs[key], {
      // Without a bake time a notification may still kill a daemon.
      forMs: Math.max(0, ...uses.map((bundle) => bakeOf(config, bundle).forMs)) || defaultBake.forMs,
      bakeStartedAtMs: starts.length === 0 ? undefined : Math.max(...starts),
    });
    return Math.max(noticeAtMs, successorNotifiableAtMs(workers[key]));
  };
}

/**
 * @param options.toLoad more groups that need a loader run, without workers to notify
 * @returns the context for the actions of these kinds; undefined if there are none
 */
function createNotifyContext(
  host: Host,
  actions: Actions,
  kinds: readonly WorkerAction['kind'][],
  options: ReconcileOptions & Pick<NotifyContext, 'target'> & { readonly toLoad?: readonly string[] },
): NotifyContext | undefined {
  const { target, signal, nextNotificationId, staging, toLoad = [] } = options;
  const chosen = [...actions].filter(([, { kind }]) => kinds.includes(kind));
  if (chosen.length === 0 && toLoad.length === 0) return undefined;
  host.log.debug({ actions: Object.fromEntries(chosen) }, 'next for workers');
  const only = new Set(chosen.map(([key]) => key));
  const names = new Set([...[...only].map(groupOf), ...toLoad]);
  const groups = host.groups.filter(({ config }) => names.has(config.name));
  const verbOf: VerbOf = ({ config }, worker) =>
    actions.get(workerKey(config.name, worker))?.kind === 'restart' ? 'restart' : 'reset';
  return { groups, target, signal, nextNotificationId, only, staging: staging(), behavior: { verbOf } };
}

/** @returns the results after probes. After a refusal, also the results of the workers that were notified before it */
async function notifyPending(host: Host, context: NotifyContext): Promise<NotifyReport> {
  const { unreached, refusal: loaderRefusal } = await runPendingLoaders(host, context);
  try {
    const onStep = (keys: readonly string[]): StepNote => noteUnprobedAnswers(host, keys);
    const { results } = await resetWorkers(host, {
      ...context,
      unreached,
      behavior: {
        ...context.behavior,
        onStep,
        isSilenceRefusal: createOlderFilesCheck(host, context.target.generation),
      },
    });
    const proven = await probeAfterNotify(host, context, results);
    return loaderRefusal === undefined ? proven : { ...proven, refusal: loaderRefusal };
  } catch (error) {
    const refusal = toWritError(error);
    const { workers } = host.ledger.read();
    const results = resultsIn(refusal).map((one) =>
      stillRefusesAll(workers[workerKey(one.group, one.worker)], one) ? asUnreachable(one) : one,
    );
    // A worker that refuses every generation did not judge this one.
    const isAboutPolicy =
      refusal.code !== 'WORKER_REFUSED' || results.some(({ state }) => state === 'refused');
    return { results, ...(isAboutPolicy ? problemsOf([refusal]) : { problems: [] }) };
  }
}

/** @returns a check by worker key: true if its process accepted a generation with other files than the active one */
function createOlderFilesCheck(host: Host, active: number): (key: string) => boolean {
  const { workers } = host.ledger.read();
  const changedSince = changesTo(host, active);
  return (key) => {
    const entry = workers[key];
    const group = host.config.workers.find(({ name }) => name === groupOf(key));
    // A process that started after the swap may have read the active generation.
    if (entry === undefined || entry.appeared === true || group === undefined) return false;
    const accepted = acceptedGeneration(entry);
    const changed = accepted === undefined ? undefined : changedSince(accepted);
    return changed !== undefined && affectsGroup(group, changed);
  };
}

/**
 * Records each accepted answer as it arrives, except in groups with a probe: there the probe decides first. A refusal is
 * recorded later, because it is first compared with the earlier one.
 */
function noteUnprobedAnswers(host: Host, keys: readonly string[]): StepNote {
  const note = noteStep(host, keys);
  const probed = new Set(
    host.groups.flatMap(({ config: { probe, name } }) => (probe === undefined ? [] : [name])),
  );
  return (result) => {
    if (hasAnswered(result) && !probed.has(result.group)) note(result);
  };
}

/**
 * Notifies suspect workers again. Only their probe can confirm them. Their answers never cause a rollback of a policy that
 * they had accepted, because otherwise whatever changed their state could cause one.
 */
async function remindSuspects(host: Host, context: NotifyContext): Promise<readonly WorkerResult[]> {
  const groups = await notifyWorkers(host, {
    ...context,
    behavior: { ...context.behavior, skipStepProbes: true },
  });
  const answers = groups
    .flatMap((one) => one.results)
    .map((one): WorkerResult => (one.state === 'unreachable' ? one : { ...one, state: 'notified' }));
  const probed = { ...context, groups: context.groups.map((group) => limitProbeToRepeat(host, group)) };
  const { results } = await probeAfterNotify(host, probed, answers);
  return results.map((one, index) =>
    one.state === 'unreachable' && answers[index]?.state === 'notified' ? { ...one, state: 'notified' } : one,
  );
}

/**
 * Limits the probe after a reminder to the time until the next repeated probe. Only failures of the repeated probe count, so
 * with the full deadline a bad release with a short bake time would stay active for a minute longer.
 * @returns the group with the limited probe; it runs once if one attempt may take longer than that time
 */
function limitProbeToRepeat(host: Host, group: WorkerGroup): WorkerGroup {
  const { probe } = group.config;
  const gapMs = probe && probeGapMs(host.config, host.ledger.read(), group.config, probe.everyMs);
  if (probe === undefined || gapMs === undefined) return group;
  const usualMs = probe.deadlineMs ?? defaultProbeDeadlineMs;
  const deadlineMs = gapMs > probe.timeoutMs ? Math.min(gapMs, usualMs) : 0;
  return { ...group, config: { ...group.config, probe: { ...probe, deadlineMs } } };
}
