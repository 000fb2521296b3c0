// Liveness of workers: which are alive, which died of a generation, which processes were replaced, and the restart of dead
// workers. Liveness is known only where the driver can see the process; otherwise it is `unknown`.
import type { HookConfig } from '../../core/config/config.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';
import { unreachable } from '../../workers/contract/answer.js';
import type { Answer, Driver, Liveness, SupervisorFailure, Target } from '../../workers/contract/driver.js';
import { deadAnswerText, findDeathHint } from '../../workers/contract/liveness.js';
import { type NotifyVerb, notifyWorker } from '../../workers/contract/notify-worker.js';
import { livenessIn } from '../../workers/shared/pid-file.js';
import type { WorkerGroup } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import type { NotifyOptions } from './notify-context.js';
import { type Member, mapBounded, maxParallelNotices, readMembers, workerResult } from './worker-groups.js';
import { hasAnswered, workerKey } from './worker-ledger.js';
import { createRefusalError } from './worker-refusal.js';

/** @returns `unknown` if the driver cannot see the process, or cannot read its state now */
export async function livenessOf(driver: Driver, worker: string): Promise<Liveness> {
  try {
    return (await driver.liveness?.(worker)) ?? 'unknown';
  } catch (error) {
    if (isWritError(error)) return 'unknown';
    throw error;
  }
}

/**
 * Reads the liveness of a worker that was not reached, because a running worker that stays unreachable counts as lost later.
 * @param hook the command that did not reach the worker. If it names a pid file, the process in that file is checked
 * @returns nothing if the liveness is unknown
 */
export async function readProcessLiveness(
  { driver }: Pick<WorkerGroup, 'driver'>,
  worker: string,
  hook?: HookConfig,
): Promise<Pick<WorkerResult, 'lives'>> {
  const { pidFile } = hook ?? {};
  const liveness = pidFile === undefined ? driver && (await livenessOf(driver, worker)) : livenessIn(pidFile);
  return liveness === undefined ? {} : toResultLiveness(liveness);
}

/** @returns the result of an unreachable worker with its liveness; for a dead worker, the text also has the reason */
export async function withLiveness(
  driver: Driver,
  result: WorkerResult,
  liveness: Liveness,
): Promise<WorkerResult> {
  const why = liveness === 'dead' ? await findDeathHint(driver, result.worker) : undefined;
  const text = why === undefined || result.text.includes(why) ? result.text : `${why}; ${result.text}`;
  return { ...result, ...toResultLiveness(liveness), text };
}

function toResultLiveness(liveness: Liveness): Pick<WorkerResult, 'lives'> {
  return liveness === 'unknown' ? {} : { lives: liveness === 'alive' ? 'yes' : 'no' };
}

/** @returns keys `group/worker` of the workers that are alive now; groups without a liveness check have none */
export async function aliveWorkers(groups: readonly WorkerGroup[]): Promise<ReadonlySet<string>> {
  const alive = new Set<string>();
  for (const group of groups) {
    const { config, driver } = group;
    if (driver?.liveness === undefined) continue;
    const members = await readMembers(group);
    if (isWritError(members)) continue;
    const known = await Promise.all(members.map(({ worker }) => livenessOf(driver, worker)));
    for (const [index, { worker }] of members.entries())
      if (known[index] === 'alive') alive.add(workerKey(config.name, worker));
  }
  return alive;
}

/** Removes selected members that are dead: a killed process leaves its socket or pid file, so its driver still lists it. */
export async function removeDeadMembers(
  { driver }: WorkerGroup,
  members: readonly Member[],
  isChecked: (member: Member) => boolean,
): Promise<readonly Member[]> {
  if (driver?.liveness === undefined) return members;
  const isKept = await mapBounded(
    members,
    maxParallelNotices,
    async (one) => !isChecked(one) || (await livenessOf(driver, one.worker)) !== 'dead',
  );
  return members.filter((_, index) => isKept[index]);
}

/** A daemon that acknowledges and then dies of a policy dies while it reads it. This is the time to wait for that. */
const deathDelayMs = 500;

/**
 * Checks the liveness of workers that accepted. Waits first if one of them was only notified, because it may still read the
 * generation; a confirmed worker has read it.
 * @returns the results, with workers that died since as `unreachable`
 */
export async function recheckLiveness(
  groups: readonly WorkerGroup[],
  results: readonly WorkerResult[],
  { clock, signal }: { readonly clock: Pick<Clock, 'sleep' | 'nowMs'>; readonly signal: AbortSignal },
): Promise<WorkerResult[]> {
  const watched = (result: WorkerResult): Driver | undefined => {
    const driver = groups.find((one) => one.config.name === result.group)?.driver;
    return hasAnswered(result) && driver?.liveness !== undefined ? driver : undefined;
  };
  if (results.some((one) => one.state === 'notified' && watched(one) !== undefined))
    await clock.sleep(deathDelayMs, signal);
  return Promise.all(
    results.map(async (result): Promise<WorkerResult> => {
      const driver = watched(result);
      if (driver === undefined || (await livenessOf(driver, result.worker)) !== 'dead') return result;
      const text = await deadAnswerText(driver, result.worker, result.text);
      return { ...result, state: 'unreachable', text, atMs: clock.nowMs() };
    }),
  );
}

/**
 * Compares the process of each worker that accepted with its current one, for drivers with `keepsProcess`: there a new
 * process has not answered. The next refresh of the members makes it pending.
 * @returns the results, with replaced processes as `unreachable`
 */
export async function markReplacedProcesses(
  groups: readonly WorkerGroup[],
  results: readonly WorkerResult[],
): Promise<WorkerResult[]> {
  const now = new Map<string, string>();
  for (const group of groups) {
    const members = group.driver?.keepsProcess === 'yes' ? await readMembers(group) : [];
    if (isWritError(members)) continue;
    for (const { worker, process } of members) now.set(workerKey(group.config.name, worker), process);
  }
  return results.map((result): WorkerResult => {
    const { process } = result;
    const known = now.get(workerKey(result.group, result.worker)) ?? process;
    if (!hasAnswered(result) || process === undefined || known === process) return result;
    const text = `answered, and ${otherProcessText(process, known)}: ${result.text}`;
    return { ...result, state: 'unreachable', text };
  });
}

/** A daemon that replaces itself on a reload does so within this time. */
const replacedWithinMs = 15_000;

/** A signal has no answer, so a daemon that replaces itself may start the new process a moment after the notification. */
const startedWithinMs = 2000;

/** After this many replacements in a row soon after a notification, the next notification waits for `replacedWithinMs`. */
const soonReplacedTimes = 2;

/**
 * Decides whether the last notification started the new process of a worker. A process that started later than the
 * notification was not notified: an operator may have restarted the worker. A daemon that is killed soon after two
 * notifications cannot be distinguished from one that a notification replaces. So the third notification waits, and only a
 * replacement after it counts as made by the notification, because that process had run until then.
 * @param now.startedAtMs of the process, epoch milliseconds; undefined if it is not known
 * @returns `notification` if the process counts as notified; `unknown` if a notification may have started it
 */
export function processOrigin(
  entry: WorkerLedger,
  { nowMs, startedAtMs }: { readonly nowMs: number; readonly startedAtMs?: number | undefined },
): 'notification' | 'unknown' | 'other' {
  const { state, notifiedAtMs = 0, replacedAtMs } = entry;
  const isSoon = (atMs: number | undefined, untilMs: number): boolean =>
    atMs !== undefined && atMs <= untilMs && untilMs - atMs <= replacedWithinMs;
  // One notification starts at most one process.
  if (!hasAnswered(entry) || replacedAtMs !== undefined || !isSoon(entry.notifiedAtMs, nowMs)) return 'other';
  const isMadeByIt = (startedAtMs ?? notifiedAtMs) <= notifiedAtMs + startedWithinMs;
  const isNotified = (state === 'notified' && isMadeByIt) || notifiedAtMs >= observedUntilMs(entry);
  return isNotified ? 'notification' : 'unknown';
}

/** @returns the members of the ledger entry that count one more replacement soon after a notification */
export function withSoonReplacement(
  entry: WorkerLedger | undefined,
  nowMs: number,
): Pick<WorkerLedger, 'soonReplacedAtMs' | 'soonReplacements'> {
  return { soonReplacedAtMs: nowMs, soonReplacements: (entry?.soonReplacements ?? 0) + 1 };
}

/** @returns epoch milliseconds before which the successor is not notified; 0 if it may be notified at once */
export function successorNotifiableAtMs(entry: WorkerLedger | undefined): number {
  const atMs = entry === undefined ? Number.POSITIVE_INFINITY : observedUntilMs(entry);
  return Number.isFinite(atMs) ? atMs : 0;
}

function observedUntilMs({ soonReplacedAtMs, soonReplacements = 0 }: WorkerLedger): number {
  return soonReplacedAtMs === undefined || soonReplacements < soonReplacedTimes
    ? Number.POSITIVE_INFINITY
    : soonReplacedAtMs + replacedWithinMs;
}

/** @returns the text for a changed process identity; the same process on a new connection has its own text */
export function otherProcessText(before = '', now = ''): string {
  const [known, connection] = before.split('/');
  const isSameProcess = connection !== undefined && now.startsWith(`${known}/`);
  return isSameProcess
    ? 'has connected again, and has not answered since'
    : 'is a different process than before';
}

/** @throws WritError WORKER_DIED for workers that accepted `before` and are unreachable `after`; `facts.results` has all */
export function throwIfDied(before: readonly WorkerResult[], after: readonly WorkerResult[]): void {
  const died = after.filter(
    (one, index) => one.state === 'unreachable' && before[index]?.state !== one.state,
  );
  if (died.length > 0) throw createRefusalError('WORKER_DIED', died, after);
}

export interface RestartDeadOptions {
  readonly groups: readonly WorkerGroup[];
  readonly target: Target;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/**
 * During a restore: restarts each worker of a group with `onDead: restart` that is dead or refuses the restored generation.
 * @returns the results, with the new ones of restarted workers
 * @throws WritError WORKER_REFUSED if a worker still refuses, restarted or not; WORKER_DIED if a restart failed
 */
export async function restartDeadWorkers(
  results: readonly WorkerResult[],
  options: RestartDeadOptions,
): Promise<WorkerResult[]> {
  const after: WorkerResult[] = [];
  for (const result of results) after.push(await restartIfDeadOrRefused(result, options));
  const refused = after.filter((one) => one.state === 'refused');
  if (refused.length > 0) throw createRefusalError('WORKER_REFUSED', refused, after);
  const gone = after.filter((one, index) => one.state === 'unreachable' && one !== results[index]);
  if (gone.length > 0) throw createRefusalError('WORKER_DIED', gone, after);
  return after;
}

async function restartIfDeadOrRefused(
  result: WorkerResult,
  { groups, target, clock }: RestartDeadOptions,
): Promise<WorkerResult> {
  const { group, worker, text, state } = result;
  const { driver, config } = groups.find((one) => one.config.name === group) ?? {};
  if (config?.onDead !== 'restart' || driver?.restart === undefined) return result;
  const isDead = state === 'unreachable' && (await livenessOf(driver, worker)) === 'dead';
  if (state !== 'refused' && !isDead) return result;
  const timeoutMs = config.reset?.timeoutMs ?? 0;
  const answer = await notifyWorker(driver, worker, { verb: 'restart', target, timeoutMs });
  const restarted = { ...answer, text: `${text}; restarted: ${answer.text}` };
  return workerResult(group, worker, restarted, target.generation, clock.nowMs());
}

type StartFailedOptions = Pick<NotifyOptions, 'target' | 'signal' | 'onNotify'>;

export interface UnansweredNotification {
  readonly worker: string;
  /** The attempted verb; `none` if no notification was sent. */
  readonly verb: NotifyVerb | 'none';
  readonly answer: Answer;
}

/**
 * During a move: starts a dead worker of a group with `onDead: restart` if its supervisor records a failure. The worker was
 * dead before, so a failed start is no verdict on the policy.
 * @returns its answer; `code` SUPERVISOR_GAVE_UP and the command to start it if the supervisor gave up; undefined without a
 *   recorded failure
 */
export async function startFailedWorker(
  { driver, config }: WorkerGroup,
  { worker, answer }: UnansweredNotification,
  { target, signal, onNotify }: StartFailedOptions,
): Promise<Answer | undefined> {
  const failure = await readFailure(driver, worker);
  if (driver === undefined || failure === undefined) return undefined;
  if (config.onDead !== 'restart' || driver.restart === undefined) return toFailedAnswer(answer, failure);
  onNotify?.(workerKey(config.name, worker), 'restart');
  const timeoutMs = config.reset?.timeoutMs ?? 0;
  const restart = { verb: 'restart', target, timeoutMs, ...given({ signal }) } as const;
  const started = await notifyWorker(driver, worker, restart);
  const text = `${failure.text}; started again: ${started.text}`;
  if (started.kind === 'notified' || started.kind === 'confirmed') return { ...started, text };
  const after = (await readFailure(driver, worker)) ?? failure;
  return toFailedAnswer(unreachable(text), after);
}

async function readFailure(
  driver: Driver | undefined,
  worker: string,
): Promise<SupervisorFailure | undefined> {
  try {
    return await driver?.failure?.(worker);
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

function toFailedAnswer(answer: Answer, { hasGivenUp, text, command }: SupervisorFailure): Answer {
  if (hasGivenUp === 'no') return { ...answer, text: `${answer.text}; ${text}` };
  return { ...unreachable(`${text}; start it with: ${command}`), code: 'SUPERVISOR_GAVE_UP' };
}
