// Notifies the pending workers of what they are to use: one that was notified in vain stays pending until it is confirmed or
// superseded, and who appears is notified. Runs inside a cycle with nothing new, and apart from cycles on the agent's timer. What is
// done is decided in worker-action-rules.
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
import { successorAloneAtMs } from './dead-workers.js';
import { readSets } from './membership.js';
import type { NotifyContext, ReconcileOptions } from './notify-context.js';
import { noteStep, notifyWorkers, resetWorkers, type StepNote } from './notify-steps.js';
import { changesTo, verbsTo } from './notify-verbs.js';
import { problemsIn, warningsIn, workerFindings } from './pending-problems.js';
import { type Notified, problemsOf, proveFirst, proveNotified } from './prove.js';
import { resultsIn, standingRefusal } from './refusal.js';
import { asNotReached, stillRefusesAll } from './repeated-refusal-rules.js';
import { runPendingLoaders, unloadedWithNobody } from './run-loaders.js';
import { type ActionOptions, nextWorkerActions, type WorkerAction } from './worker-action-rules.js';
import {
  acceptedGeneration,
  groupOf,
  hasAnswered,
  noteWorkers,
  type VerbOf,
  workerKey,
} from './worker-ledger.js';

export interface ReconcileResult {
  /** What those said that were notified now, or whose probe answered. */
  readonly results: readonly WorkerResult[];
  /** What is wrong still; none when every worker there is was notified. */
  readonly problems: readonly Problem[];
  /** What is no more than a warning, as a worker that proved nothing. */
  readonly warnings: readonly Problem[];
  /** How long it took to read each set, in milliseconds by the names of the groups. */
  readonly readMs: ReadonlyMap<string, number>;
}

const nothing: ReconcileResult = { results: [], problems: [], warnings: [], readMs: new Map() };

/**
 * Reads the sets again, decides, asks probes, decides for whom they refused, and notifies those; what each has found is
 * noted before the next begins. Never rejects for what workers do. @throws WritError DISK_*, STATE_DAMAGED
 */
export async function reconcileWorkers(host: Host, options: ReconcileOptions): Promise<ReconcileResult> {
  const active = readActive(host.paths);
  if (active === undefined) return nothing;
  const { groups = host.groups, doubt = 'the-answered', who, onRefused } = options;
  const readMs = await readSets(host, { active: active.number, groups, doubt });
  const target = { generation: active.number, path: active.path };
  const decide = (probes: ActionOptions['probes']): Actions => {
    const ledger = host.ledger.read();
    const verbOf = verbsTo(host, { to: active.number, workers: ledger.workers });
    const successorAtMs = successorTimes(host, ledger);
    const options = { nowMs: host.clock.nowMs(), who, probes, verbOf, successorAtMs };
    return nextWorkerActions(ledger, host.groups, options);
  };
  const toAsk = contextOf(host, decide('not-asked'), ['probe'], { ...options, target });
  const proven = toAsk === undefined ? [] : await proveFirst(host, toAsk);
  noteWorkers(host, proven);
  const actions = decide('asked');
  const toLoad = who === 'all' ? unloadedWithNobody(host.ledger.read()) : [];
  const toNotify = contextOf(host, actions, ['notify', 'restart'], { ...options, target, toLoad });
  const notified: Notified = toNotify === undefined ? nothing : await notifyPending(host, toNotify);
  noteWorkers(host, notified.results);
  const toRemind = contextOf(host, actions, ['remind'], { ...options, target });
  const reminded = toRemind === undefined ? [] : await remind(host, toRemind);
  noteWorkers(host, reminded);
  // The ledger names each worker that refuses.
  const others = notified.problems.filter(
    ({ code }) => code !== 'WORKER_REFUSED' && code !== 'SILENT_REFUSAL',
  );
  const findings = workerFindings(host);
  const problems = [...others, ...problemsIn(findings)];
  const refusal = notified.refusal ?? standingRefusal(host, active.number);
  if (refusal !== undefined) await onRefused?.(refusal);
  return {
    results: [...proven, ...notified.results, ...reminded],
    problems,
    warnings: warningsIn(findings),
    readMs,
  };
}

type Actions = ReturnType<typeof nextWorkerActions>;

function successorTimes(
  { config }: Host,
  { workers, runs = {}, bakes = {} }: Ledger,
): NonNullable<ActionOptions['successorAtMs']> {
  return ({ config: { uses } }, key) => {
    const starts = uses.flatMap((bundle) => bakes[bundle]?.startedAtMs ?? []);
    const noticeAtMs = successorNoticeAtMs(runs[key], {
      // Without a bake time a daemon may die of notifications all the same.
      forMs: Math.max(0, ...uses.map((bundle) => bakeOf(config, bundle).forMs)) || defaultBake.forMs,
      bakeStartedAtMs: starts.length === 0 ? undefined : Math.max(...starts),
    });
    return Math.max(noticeAtMs, successorAloneAtMs(workers[key]));
  };
}

/**
 * @param options.toLoad groups that only a loader is to run for
 * @returns what it takes to do these kinds of actions; undefined where there are none
 */
function contextOf(
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
  return { groups, target, signal, nextNotificationId, only, staging: staging(), manner: { verbOf } };
}

/** What was said before somebody refused counts too. */
async function notifyPending(host: Host, context: NotifyContext): Promise<Notified> {
  const { unreached, refusal: no } = await runPendingLoaders(host, context);
  try {
    const onStep = (keys: readonly string[]): StepNote => noteAnswers(host, keys);
    const { results } = await resetWorkers(host, {
      ...context,
      unreached,
      manner: {
        ...context.manner,
        onStep,
        isSilenceRefusal: usesOlderFiles(host, context.target.generation),
      },
    });
    const proven = await proveNotified(host, context, results);
    return no === undefined ? proven : { ...proven, refusal: no };
  } catch (error) {
    const refusal = toWritError(error);
    const { workers } = host.ledger.read();
    const results = resultsIn(refusal).map((one) =>
      stillRefusesAll(workers[workerKey(one.group, one.worker)], one) ? asNotReached(one) : one,
    );
    // A worker that refuses everything has said nothing about the policy, and the others were not refused.
    const isAboutPolicy =
      refusal.code !== 'WORKER_REFUSED' || results.some(({ state }) => state === 'refused');
    return { results, ...(isAboutPolicy ? problemsOf([refusal]) : { problems: [] }) };
  }
}

/** @returns whether the process of a worker, by its key, took a generation in which the files of its group differ */
function usesOlderFiles(host: Host, active: number): (key: string) => boolean {
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

/** Each answer as it arrives. A probe judges its group first, and a refusal is compared first. */
function noteAnswers(host: Host, keys: readonly string[]): StepNote {
  const note = noteStep(host, keys);
  const probed = new Set(
    host.groups.flatMap(({ config: { probe, name } }) => (probe === undefined ? [] : [name])),
  );
  return (result) => {
    if (hasAnswered(result) && !probed.has(result.group)) note(result);
  };
}

/**
 * Notifies whom a repeated probe doubts. Only the probe can confirm them, and no answer of theirs takes a policy away that
 * they had taken: whoever changed what they use would take it away by that.
 */
async function remind(host: Host, context: NotifyContext): Promise<readonly WorkerResult[]> {
  const groups = await notifyWorkers(host, { ...context, manner: { ...context.manner, proofs: 'last' } });
  const said = groups
    .flatMap((one) => one.results)
    .map((one): WorkerResult => (one.state === 'unreachable' ? one : { ...one, state: 'notified' }));
  const probed = { ...context, groups: context.groups.map((group) => withProbeUntilRepeated(host, group)) };
  const { results } = await proveNotified(host, probed, said);
  return results.map((one, index) =>
    one.state === 'unreachable' && said[index]?.state === 'notified' ? { ...one, state: 'notified' } : one,
  );
}

/**
 * The answers after a reminder are not counted, but those of the repeated probe are. With the whole deadline of the probe a bad
 * release of a short bake time would stay active for a minute longer.
 * @returns the group; its probe ends at the time of the next repeated one, and is asked once where one attempt may take longer
 */
function withProbeUntilRepeated(host: Host, group: WorkerGroup): WorkerGroup {
  const { probe } = group.config;
  const gapMs = probe && probeGapMs(host.config, host.ledger.read(), group.config, probe.everyMs);
  if (probe === undefined || gapMs === undefined) return group;
  const usualMs = probe.deadlineMs ?? defaultProbeDeadlineMs;
  const deadlineMs = gapMs > probe.timeoutMs ? Math.min(gapMs, usualMs) : 0;
  return { ...group, config: { ...group.config, probe: { ...probe, deadlineMs } } };
}
