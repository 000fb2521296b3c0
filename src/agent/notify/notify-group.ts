// Notifies the workers of a group about a generation: all at once, or rolling with the first one as canary; those that are to
// be restarted one at a time. A no stops the notifying, in every group. Reports what each worker said; what that means
// for the policy is the caller's.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { unreachable } from '../../workers/contract/answer.js';
import type { Answer, Driver, Target } from '../../workers/contract/driver.js';
import { type NotifyVerb, notifyWorker } from '../../workers/contract/notify-worker.js';
import type { WorkerGroup } from '../state/host.js';
import { livenessOf, seenAlive, startFailed, type Unanswered, withLiveness } from './dead-workers.js';
import type { No } from './refusal.js';
import { type Member, mapBounded, maxParallelNotices, readMembers, workerResult } from './worker-groups.js';
import { groupOf, hasAnswered, type VerbOf, workerKey, workerOf } from './worker-ledger.js';

export interface NotifyOptions {
  readonly target: Target;
  readonly clock: Clock;
  /** Names each notification. */
  readonly nextNotificationId: () => string;
  readonly signal?: AbortSignal;
  /** Only these workers (their keys); everybody when it is left out. */
  readonly only?: ReadonlySet<string> | undefined;
  /** By the names of groups whose loader reached nobody: why. Nobody there is notified of what is not loaded. */
  readonly unreached?: ReadonlyMap<string, string> | undefined;
  /** Says who keeps what it has. */
  readonly isSpared?: (group: WorkerGroup, member: Member) => boolean;
  /** These too, though nobody lists them any more: they may have died of what they were notified of. */
  readonly also?: ReadonlySet<string>;
  /** `reset` for everybody where it is left out. */
  readonly verbOf?: VerbOf;
  /** Who lived before anything was changed; left out: who lives when it is notified. */
  readonly alive?: ReadonlySet<string>;
  /** Whether a worker that is known to refuse by silence refuses with it, by its key. Left out: it may use this already. */
  readonly isSilenceRefusal?: (key: string) => boolean;
  /** `is-waited-for`: a busy worker is asked again, for as long as its group waits for such. Left out: it is asked once. */
  readonly notNow?: 'is-waited-for';
  /** `yes`: who is to be restarted is started where it is down, for it may be us who took it down. */
  readonly restartDead?: 'yes';
  /** Before each notification. */
  readonly onNotify?: (key: string, verb: NotifyVerb) => void;
  /** Called before each step with the keys of its workers. @returns what is called with each result as it arrives */
  readonly onStep?: (keys: readonly string[]) => (result: WorkerResult) => void;
  /** Where more are notified after these: asked of those that answered. @throws WritError a refusal */
  readonly prove?: (group: WorkerGroup, results: readonly WorkerResult[]) => Promise<void>;
}

export interface NotifiedGroup {
  readonly group: WorkerGroup;
  /** Workers that exist just now, whether or not they were notified. */
  readonly members: readonly string[];
  readonly results: readonly WorkerResult[];
  readonly noes: readonly No[];
  /** What the proof of a rolling step said. */
  readonly failure?: WritError | undefined;
  /** WORKER_UNREACHABLE: nobody could say who the workers are. */
  readonly unlisted?: WritError;
}

/** @returns what was said in each group; who was not notified because of a no is in no result */
export function notifyGroups(
  groups: readonly WorkerGroup[],
  options: NotifyOptions,
): Promise<NotifiedGroup[]> {
  const stop = new AbortController();
  return Promise.all(groups.map((group) => notifyGroup(group, { ...options, stop })));
}

type GroupRun = NotifyOptions & { readonly stop: AbortController };

interface OneGroup {
  readonly group: WorkerGroup;
  readonly driver: Driver;
  readonly options: GroupRun;
  /** Monotonic: when the time of the group is over. */
  readonly endMs: number;
  /** Monotonic: when the first of them said "not now". */
  readonly busy: { sinceMs?: number };
}

async function notifyGroup(group: WorkerGroup, options: GroupRun): Promise<NotifiedGroup> {
  const { driver, config } = group;
  const silent = { group, members: [], results: [], noes: [] };
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

/** A worker that is notified; one that nobody lists any more has no process that anybody can see. */
type Recipient = Pick<Member, 'worker'> & Partial<Member>;

function workersToNotify(
  group: WorkerGroup,
  members: readonly Member[],
  { only, also, isSpared }: GroupRun,
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
  one: OneGroup,
  workers: readonly Recipient[],
): Promise<Pick<NotifiedGroup, 'results' | 'noes' | 'failure'>> {
  const { group, options } = one;
  const { rolling = Number.POSITIVE_INFINITY } = group.config;
  const left = inOrder(group, workers, options);
  const all: Said[] = [];
  let failure: WritError | undefined;
  while (left.length > 0 && !options.stop.signal.aborted) {
    const isCanary = Number.isFinite(rolling) && !all.some(({ result }) => hasAnswered(result));
    const batch = left.splice(0, stepSize(left, isCanary ? 1 : rolling));
    const onResult = options.onStep?.(batch.map(({ worker }) => workerKey(group.config.name, worker)));
    const said = await mapBounded(batch, maxParallelNotices, async (worker) => {
      const end = await notifyOne(one, worker);
      onResult?.(end.result);
      return end;
    });
    all.push(...said);
    const isNo = said.some(({ no }) => no !== undefined);
    failure = isNo || left.length === 0 ? undefined : await proofOf(one, said);
    // The next ones keep what they have.
    if (isNo || failure !== undefined) options.stop.abort();
    else if (said.some(({ lost }) => lost === 'yes')) left.length = 0;
  }
  const noes = all.flatMap(({ no, result }) => (no === undefined ? [] : [{ code: no, result }]));
  return { results: all.map(({ result }) => result), noes, failure };
}

type Wanted = Recipient & { readonly verb: NotifyVerb };

/** Rules are read in a moment: who is restarted comes last. */
function inOrder(group: WorkerGroup, workers: readonly Recipient[], { verbOf }: GroupRun): Wanted[] {
  const canRestart = group.driver?.restart !== undefined;
  const wanted = workers.map((one): Wanted => {
    return { ...one, verb: canRestart ? (verbOf?.(group, one.worker) ?? 'reset') : 'reset' };
  });
  return [...wanted.filter((one) => one.verb === 'reset'), ...wanted.filter((one) => one.verb === 'restart')];
}

/** One alone where it is restarted: as long as it is away, the others serve. */
function stepSize([first, ...others]: readonly Wanted[], atMost: number): number {
  if (first?.verb === 'restart') return 1;
  return Math.min(1 + others.filter((one) => one.verb === 'reset').length, atMost);
}

async function proofOf({ group, options }: OneGroup, said: readonly Said[]): Promise<WritError | undefined> {
  const results = said.map(({ result }) => result).filter(hasAnswered);
  if (results.length === 0) return undefined;
  try {
    await options.prove?.(group, results);
    return undefined;
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

interface Said {
  readonly result: WorkerResult;
  readonly no?: No['code'];
  /** `yes`: we took it down, and nobody can say whether it is up again. */
  readonly lost?: 'yes';
}

async function notifyOne(one: OneGroup, { worker, verb, process }: Wanted): Promise<Said> {
  const { group, driver, options } = one;
  const { name } = group.config;
  const notLoaded = options.unreached?.get(name);
  if (notLoaded !== undefined) {
    const { target, clock, nextNotificationId } = options;
    const result = workerResult(name, worker, unreachable(notLoaded), target.generation, clock.nowMs());
    const lives = await seenAlive(group, worker, group.config.load);
    return { result: { ...result, ...lives, notificationId: nextNotificationId() } };
  }
  const key = workerKey(name, worker);
  const lived = options.alive?.has(key) ?? (await livenessOf(driver, worker)) === 'alive';
  const notificationId = options.nextNotificationId();
  const { answer, verb: done } = await ask(one, { worker, verb });
  const { target, clock } = options;
  const result = {
    ...workerResult(name, worker, answer, target.generation, clock.nowMs()),
    notificationId,
    // A restart makes another process of it: who that is, the next reading of the set says.
    ...(process === undefined || done === 'restart' ? {} : { process }),
  };
  if (answer.kind === 'refused') return { result, no: 'WORKER_REFUSED' };
  if (answer.kind !== 'unreachable') return { result };
  if (answer.silence !== undefined && options.isSilenceRefusal?.(key) === true)
    return { result, no: 'SILENT_REFUSAL' };
  return judgeUnanswered(one, { worker, answer, verb: done }, { result, lived });
}

async function judgeUnanswered(
  one: OneGroup,
  unanswered: Unanswered,
  { result, lived }: { readonly result: WorkerResult; readonly lived: boolean },
): Promise<Said> {
  const { driver, options } = one;
  const { worker, answer, verb } = unanswered;
  const liveness = await livenessOf(driver, worker);
  if (answer.notNow === 'yes' && liveness !== 'dead')
    return { result: await withLiveness(driver, result, liveness) };
  const isDown = liveness === 'dead' || (verb === 'restart' && liveness === 'alive');
  if (lived && isDown) return { result, no: 'WORKER_DIED' };
  const isLeft = liveness !== 'dead' || options.restartDead === 'yes';
  const started = isLeft ? undefined : await startedAgain(one, unanswered, result);
  if (started !== undefined) return started;
  if (verb === 'restart') return { result, lost: 'yes' };
  return { result: await withLiveness(driver, result, liveness) };
}

/** It was dead before it was notified. @returns undefined where its supervisor records no failure */
async function startedAgain(
  { group, options }: OneGroup,
  unanswered: Unanswered,
  { process: _, ...result }: WorkerResult,
): Promise<Said | undefined> {
  const answer = await startFailed(group, unanswered, options);
  if (answer === undefined) return undefined;
  const { generation, worker } = result;
  const said = workerResult(group.config.name, worker, answer, generation, options.clock.nowMs());
  const lives = hasAnswered(said) ? {} : { lives: 'no' as const };
  return { result: { ...said, ...given({ notificationId: result.notificationId }), ...lives } };
}

const retryMs = 500;
/** For the worker that stands for a loader or a probe: it answers at once. */
const answerMs = 1000;

/** @returns milliseconds until a worker is asked again that has said "not now" so often in a row */
function notNowGapMs(times: number): number {
  return [1000, 2000][times - 1] ?? 5000;
}

/** @returns true once the worker is to be asked again; all of a group are waited for together */
async function waitWhileBusy({ group, options, endMs, busy }: OneGroup, times: number): Promise<boolean> {
  const { clock, signal, stop } = options;
  if (options.notNow === undefined) return false;
  busy.sinceMs ??= clock.monotonicMs();
  const untilMs = Math.min(endMs, busy.sinceMs + (group.config.reset?.notNowForMs ?? 0));
  const gapMs = notNowGapMs(times);
  if (clock.monotonicMs() + gapMs >= untilMs) return false;
  using ending = joinSignals(signal, stop.signal);
  await clock.sleep(gapMs, ending.signal);
  return !ending.signal.aborted;
}

/** @returns the last answer of a worker that is not busy any more, or not waited for any more; undefined without time */
async function askUntilFree(one: OneGroup, { worker, verb }: Wanted): Promise<Answer | undefined> {
  const { group, driver, options, endMs } = one;
  const { clock, signal, target } = options;
  for (let times = 1; ; times++) {
    const leftMs = Math.min(group.config.reset?.timeoutMs ?? answerMs, endMs - clock.monotonicMs());
    if (leftMs <= 0) return undefined;
    const ending = signal === undefined ? {} : { signal };
    const answer = await notifyWorker(driver, worker, { verb, target, timeoutMs: leftMs, ...ending });
    if (answer.notNow === undefined || !(await waitWhileBusy(one, times))) return answer;
  }
}

/** Again only where nobody answered: a no is an answer, and a restart is not repeated. */
async function ask(one: OneGroup, wanted: Wanted): Promise<{ answer: Answer; verb: NotifyVerb | 'none' }> {
  const { group, driver, options } = one;
  const { worker, verb } = wanted;
  const { clock, signal } = options;
  // Who is down reads the policy when it starts; to start it is not ours to decide.
  const isDown = verb === 'restart' && (await livenessOf(driver, worker)) === 'dead';
  if (isDown && options.restartDead !== 'yes')
    return { answer: unreachable('does not run: it is not restarted'), verb: 'none' };
  const { retry = 0 } = group.config.reset ?? {};
  options.onNotify?.(workerKey(group.config.name, worker), verb);
  for (let tries = 0; ; tries++) {
    const answer = await askUntilFree(one, wanted);
    if (answer === undefined)
      return { answer: unreachable('the timeout of its group is over'), verb: 'none' };
    const isSilent = answer.kind === 'unreachable' && answer.notNow === undefined;
    const isFinal = !isSilent || verb === 'restart' || tries >= retry;
    if (isFinal || (await livenessOf(driver, worker)) === 'dead') return { answer, verb };
    await clock.sleep(retryMs, signal);
  }
}
