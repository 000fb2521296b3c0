// Notifies the workers of a group of a generation: all at once, or rolling with the first one as canary. Restarts are one at a
// time. A refusal stops the notifications in every group. Returns the answer of each worker; the caller decides what the
// answers mean for the policy.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { unreachable } from '../../workers/contract/answer.js';
import type { Answer, Driver } from '../../workers/contract/driver.js';
import { type NotifyVerb, notifyWorker } from '../../workers/contract/notify-worker.js';
import type { WorkerGroup } from '../state/host.js';
import {
  livenessOf,
  readProcessLiveness,
  startFailedWorker,
  type UnansweredNotification,
  withLiveness,
} from './dead-workers.js';
import type { NotifyOptions } from './notify-context.js';
import { type Member, mapBounded, maxParallelNotices, readMembers, workerResult } from './worker-groups.js';
import { groupOf, hasAnswered, workerKey, workerOf } from './worker-ledger.js';
import type { WorkerRefusal } from './worker-refusal.js';

export interface NotifiedGroup {
  readonly group: WorkerGroup;
  /** All current members, notified or not. */
  readonly members: readonly string[];
  readonly results: readonly WorkerResult[];
  readonly refusals: readonly WorkerRefusal[];
  /** The refusal of a probe after a rolling step. */
  readonly failure?: WritError | undefined;
  /** WORKER_UNREACHABLE: the members could not be listed. */
  readonly unlisted?: WritError;
}

/** @returns the results of each group; a worker that was not notified because of an earlier refusal has no result */
export function notifyGroups(
  groups: readonly WorkerGroup[],
  options: NotifyOptions,
): Promise<NotifiedGroup[]> {
  const stop = new AbortController();
  return Promise.all(groups.map((group) => notifyGroup(group, { ...options, stop })));
}

type GroupOptionsWithStop = NotifyOptions & { readonly stop: AbortController };

interface GroupNotification {
  readonly group: WorkerGroup;
  readonly driver: Driver;
  readonly options: GroupOptionsWithStop;
  /** Monotonic milliseconds: the deadline of the group. */
  readonly endMs: number;
  /** Monotonic milliseconds: the first deferral (`notNow`) in the group. */
  readonly busy: { sinceMs?: number };
}

async function notifyGroup(group: WorkerGroup, options: GroupOptionsWithStop): Promise<NotifiedGroup> {
  const { driver, config } = group;
  const silent = { group, members: [], results: [], refusals: [] };
  if (driver === undefined) return silent;
  const members = await readMembers(group);
  if (members instanceof WritError) return { ...silent, unlisted: members };
  const { deadlineMs = Number.POSITIVE_INFINITY } = config.reset ?? {};
  const endMs = options.clock.monotonicMs() + deadlineMs;
  const notified = await notifyInSteps(
    { group, driver, options, endMs, busy: {} },
    workersToNotify(group, members, options),
  );
  return { group, members: members.map((one) => one.worker), ...notified };
}

/** A worker to notify; a worker that is no longer a member has no process identity. */
type Recipient = Pick<Member, 'worker'> & Partial<Member>;

function workersToNotify(
  group: WorkerGroup,
  members: readonly Member[],
  { only, also, isSpared }: GroupOptionsWithStop,
): readonly Recipient[] {
  const { name } = group.config;
  const listed = members.filter(
    (one) => (only?.has(workerKey(name, one.worker)) ?? true) && isSpared?.(group, one) !== true,
  );
  const lost = [...(also ?? [])]
    .filter((key) => groupOf(key) === name)
    .map((key) => ({ worker: workerOf(key) }))
    .filter(({ worker }) => !members.some((one) => one.worker === worker));
  return [...listed, ...lost];
}

async function notifyInSteps(
  one: GroupNotification,
  workers: readonly Recipient[],
): Promise<Pick<NotifiedGroup, 'results' | 'refusals' | 'failure'>> {
  const { group, options } = one;
  const { rolling = Number.POSITIVE_INFINITY } = group.config;
  const left = orderRecipients(group, workers, options);
  const all: NotifyOutcome[] = [];
  let failure: WritError | undefined;
  while (left.length > 0 && !options.stop.signal.aborted) {
    const isCanary = Number.isFinite(rolling) && !all.some(({ result }) => hasAnswered(result));
    const batch = left.splice(0, stepSize(left, isCanary ? 1 : rolling));
    const onResult = options.onStep?.(batch.map(({ worker }) => workerKey(group.config.name, worker)));
    const outcomes = await mapBounded(batch, maxParallelNotices, async (worker) => {
      const end = await notifyOne(one, worker);
      onResult?.(end.result);
      return end;
    });
    all.push(...outcomes);
    const isRefused = outcomes.some(({ refusalCode }) => refusalCode !== undefined);
    failure = isRefused || left.length === 0 ? undefined : await probeStep(one, outcomes);
    // After a refusal the remaining workers keep the generation that they use.
    if (isRefused || failure !== undefined) options.stop.abort();
    else if (outcomes.some(({ isLost }) => isLost === true)) left.length = 0;
  }
  const refusals = all.flatMap(({ refusalCode, result }) =>
    refusalCode === undefined ? [] : [{ code: refusalCode, result }],
  );
  return { results: all.map(({ result }) => result), refusals, failure };
}

type RecipientWithVerb = Recipient & { readonly verb: NotifyVerb };

/** Resets come first, because they are fast; restarts come last. */
function orderRecipients(
  group: WorkerGroup,
  workers: readonly Recipient[],
  { verbOf }: GroupOptionsWithStop,
): RecipientWithVerb[] {
  const canRestart = group.driver?.restart !== undefined;
  const wanted = workers.map((one): RecipientWithVerb => {
    return { ...one, verb: canRestart ? (verbOf?.(group, one.worker) ?? 'reset') : 'reset' };
  });
  return [...wanted.filter((one) => one.verb === 'reset'), ...wanted.filter((one) => one.verb === 'restart')];
}

/** @returns 1 for a restart, so that the other workers serve while the process is down; at most `atMost` resets */
function stepSize([first, ...others]: readonly RecipientWithVerb[], atMost: number): number {
  if (first?.verb === 'restart') return 1;
  return Math.min(1 + others.filter((one) => one.verb === 'reset').length, atMost);
}

async function probeStep(
  { group, options }: GroupNotification,
  outcomes: readonly NotifyOutcome[],
): Promise<WritError | undefined> {
  const results = outcomes.map(({ result }) => result).filter(hasAnswered);
  if (results.length === 0) return undefined;
  try {
    await options.prove?.(group, results);
    return undefined;
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

interface NotifyOutcome {
  readonly result: WorkerResult;
  readonly refusalCode?: WorkerRefusal['code'];
  /** This host stopped the worker, and it is unknown whether the worker runs again. */
  readonly isLost?: boolean;
}

async function notifyOne(
  one: GroupNotification,
  { worker, verb, process }: RecipientWithVerb,
): Promise<NotifyOutcome> {
  const { group, driver, options } = one;
  const { name } = group.config;
  const notLoaded = options.unreached?.get(name);
  if (notLoaded !== undefined) {
    const { target, clock, nextNotificationId } = options;
    const result = workerResult(name, worker, unreachable(notLoaded), target.generation, clock.nowMs());
    const liveness = await readProcessLiveness(group, worker, group.config.load);
    return { result: { ...result, ...liveness, notificationId: nextNotificationId() } };
  }
  const key = workerKey(name, worker);
  const wasAlive = options.alive?.has(key) ?? (await livenessOf(driver, worker)) === 'alive';
  const notificationId = options.nextNotificationId();
  const { answer, verb: done } = await notifyWithRetries(one, { worker, verb });
  const { target, clock } = options;
  const result = {
    ...workerResult(name, worker, answer, target.generation, clock.nowMs()),
    notificationId,
    // After a restart the process identity is unknown until the members are read again.
    ...(process === undefined || done === 'restart' ? {} : { process }),
  };
  if (answer.kind === 'refused') return { result, refusalCode: 'WORKER_REFUSED' };
  if (answer.kind !== 'unreachable') return { result };
  if (answer.silence !== undefined && options.isSilenceRefusal?.(key) === true)
    return { result, refusalCode: 'SILENT_REFUSAL' };
  return judgeUnanswered(one, { worker, answer, verb: done }, { result, wasAlive });
}

async function judgeUnanswered(
  one: GroupNotification,
  unanswered: UnansweredNotification,
  { result, wasAlive }: { readonly result: WorkerResult; readonly wasAlive: boolean },
): Promise<NotifyOutcome> {
  const { driver, options } = one;
  const { worker, answer, verb } = unanswered;
  const liveness = await livenessOf(driver, worker);
  if (answer.notNow === 'yes' && liveness !== 'dead')
    return { result: await withLiveness(driver, result, liveness) };
  const isDown = liveness === 'dead' || (verb === 'restart' && liveness === 'alive');
  if (wasAlive && isDown) return { result, refusalCode: 'WORKER_DIED' };
  const isLeft = liveness !== 'dead' || options.restartDead === true;
  const started = isLeft ? undefined : await startIfFailed(one, unanswered, result);
  if (started !== undefined) return started;
  if (verb === 'restart') return { result, isLost: true };
  return { result: await withLiveness(driver, result, liveness) };
}

/** Starts a worker that was dead before its notification. @returns undefined if its supervisor records no failure */
async function startIfFailed(
  { group, options }: GroupNotification,
  unanswered: UnansweredNotification,
  { process: _, ...result }: WorkerResult,
): Promise<NotifyOutcome | undefined> {
  const answer = await startFailedWorker(group, unanswered, options);
  if (answer === undefined) return undefined;
  const { generation, worker } = result;
  const started = workerResult(group.config.name, worker, answer, generation, options.clock.nowMs());
  const liveness = hasAnswered(started) ? {} : { lives: 'no' as const };
  return { result: { ...started, ...given({ notificationId: result.notificationId }), ...liveness } };
}

const retryMs = 500;
/** For the one worker of a group without `reset`: the recorded verdict of its loader or probe is returned at once. */
const defaultAnswerTimeoutMs = 1000;

/** @param times deferrals in a row. @returns milliseconds until the next attempt */
function deferralGapMs(times: number): number {
  return [1000, 2000][times - 1] ?? 5000;
}

/** Waits for the next attempt. @returns false when the wait of the group, which all its workers share, is over */
async function waitForRetry(
  { group, options, endMs, busy }: GroupNotification,
  times: number,
): Promise<boolean> {
  const { clock, signal, stop } = options;
  if (options.retryDeferred !== true) return false;
  busy.sinceMs ??= clock.monotonicMs();
  const untilMs = Math.min(endMs, busy.sinceMs + (group.config.reset?.notNowForMs ?? 0));
  const gapMs = deferralGapMs(times);
  if (clock.monotonicMs() + gapMs >= untilMs) return false;
  using ending = joinSignals(signal, stop.signal);
  await clock.sleep(gapMs, ending.signal);
  return !ending.signal.aborted;
}

/** @returns the first answer that is no deferral, or the last deferral within the wait; undefined if no time is left */
async function notifyUntilNotDeferred(
  one: GroupNotification,
  { worker, verb }: RecipientWithVerb,
): Promise<Answer | undefined> {
  const { group, driver, options, endMs } = one;
  const { clock, signal, target } = options;
  for (let times = 1; ; times++) {
    const leftMs = Math.min(
      group.config.reset?.timeoutMs ?? defaultAnswerTimeoutMs,
      endMs - clock.monotonicMs(),
    );
    if (leftMs <= 0) return undefined;
    const ending = signal === undefined ? {} : { signal };
    const answer = await notifyWorker(driver, worker, { verb, target, timeoutMs: leftMs, ...ending });
    if (answer.notNow === undefined || !(await waitForRetry(one, times))) return answer;
  }
}

/** Repeats a reset that got no answer, `retry` times. A refusal is an answer, and a restart is never repeated. */
async function notifyWithRetries(
  one: GroupNotification,
  wanted: RecipientWithVerb,
): Promise<{ answer: Answer; verb: NotifyVerb | 'none' }> {
  const { group, driver, options } = one;
  const { worker, verb } = wanted;
  const { clock, signal } = options;
  // A stopped worker reads the policy when it starts. Its operator decides when that is, so it is not started here.
  const isDown = verb === 'restart' && (await livenessOf(driver, worker)) === 'dead';
  if (isDown && options.restartDead !== true)
    return { answer: unreachable('does not run: it is not restarted'), verb: 'none' };
  const { retry = 0 } = group.config.reset ?? {};
  options.onNotify?.(workerKey(group.config.name, worker), verb);
  for (let tries = 0; ; tries++) {
    const answer = await notifyUntilNotDeferred(one, wanted);
    if (answer === undefined)
      return { answer: unreachable('the timeout of its group is over'), verb: 'none' };
    const isSilent = answer.kind === 'unreachable' && answer.notNow === undefined;
    const isFinal = !isSilent || verb === 'restart' || tries >= retry;
    if (isFinal || (await livenessOf(driver, worker)) === 'dead') return { answer, verb };
    await clock.sleep(retryMs, signal);
  }
}
