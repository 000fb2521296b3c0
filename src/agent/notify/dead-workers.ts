// Who lives, who has died of a generation, and who is started again on the way back. Sees only what drivers can see: a
// worker of which nobody knows is neither.
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
import { refusal } from './refusal.js';
import { type Member, mapBounded, maxParallelNotices, readMembers, workerResult } from './worker-groups.js';
import { hasAnswered, workerKey } from './worker-ledger.js';

/** `unknown` where the driver cannot see it, or not just now. */
export async function livenessOf(driver: Driver, worker: string): Promise<Liveness> {
  try {
    return (await driver.liveness?.(worker)) ?? 'unknown';
  } catch (error) {
    if (isWritError(error)) return 'unknown';
    throw error;
  }
}

/**
 * Whether a worker lives that was not reached: who lives and stays unreached is lost one day.
 * @param hook the command that did not reach it: where it names a pid file, that is the process which it speaks to
 */
export async function seenAlive(
  { driver }: Pick<WorkerGroup, 'driver'>,
  worker: string,
  hook?: HookConfig,
): Promise<Pick<WorkerResult, 'lives'>> {
  const { pidFile } = hook ?? {};
  const liveness = pidFile === undefined ? driver && (await livenessOf(driver, worker)) : livenessIn(pidFile);
  return liveness === undefined ? {} : knownLiveness(liveness);
}

/** @returns a result without an answer, with the liveness of its worker and why the worker counts as dead */
export async function withLiveness(
  driver: Driver,
  result: WorkerResult,
  liveness: Liveness,
): Promise<WorkerResult> {
  const why = liveness === 'dead' ? await findDeathHint(driver, result.worker) : undefined;
  const text = why === undefined || result.text.includes(why) ? result.text : `${why}; ${result.text}`;
  return { ...result, ...knownLiveness(liveness), text };
}

export function knownLiveness(liveness: Liveness): Pick<WorkerResult, 'lives'> {
  return liveness === 'unknown' ? {} : { lives: liveness === 'alive' ? 'yes' : 'no' };
}

/** @returns keys of the workers that live just now, as far as their drivers see it */
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

/** @returns the members except for those that are asked about and dead: who is killed leaves its socket or pid file behind */
export async function withoutDead(
  { driver }: WorkerGroup,
  members: readonly Member[],
  isAsked: (member: Member) => boolean,
): Promise<readonly Member[]> {
  if (driver?.liveness === undefined) return members;
  const lives = await mapBounded(
    members,
    maxParallelNotices,
    async (one) => !isAsked(one) || (await livenessOf(driver, one.worker)) !== 'dead',
  );
  return members.filter((_, index) => lives[index]);
}

/** Daemons that say "ok" and then die of a policy do so while they read it: this long is looked after them. */
const dyingMs = 500;

/**
 * Looks after workers that answered. One that proved the generation has read it; one that was only notified may be about to.
 * @returns the results, with those that are dead by now as unreachable
 */
export async function lookAfter(
  groups: readonly WorkerGroup[],
  results: readonly WorkerResult[],
  { clock, signal }: { readonly clock: Pick<Clock, 'sleep' | 'nowMs'>; readonly signal: AbortSignal },
): Promise<WorkerResult[]> {
  const watched = (result: WorkerResult): Driver | undefined => {
    const driver = groups.find((one) => one.config.name === result.group)?.driver;
    return hasAnswered(result) && driver?.liveness !== undefined ? driver : undefined;
  };
  if (results.some((one) => one.state === 'notified' && watched(one) !== undefined))
    await clock.sleep(dyingMs, signal);
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
 * Looks whether those that answered are the same processes still, where no notification makes another one: one that came
 * since has said nothing, and is notified as soon as it is looked who is there.
 * @returns the results, with those of the replaced as unreachable
 */
export async function doubtReplaced(
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

/** Long enough for a daemon that answers a reload with another process of itself. */
const replacedWithinMs = 15_000;

/** A signal has no answer, and a daemon that answers it with another process may start that one a moment later. */
const startedWithinMs = 2000;

/** So many processes in a row that ended soon after a notification: the next one is notified only after it has lived for a while. */
const soonReplacedTimes = 2;

/**
 * Where another process under the name of a worker comes from. One that started later than the notification was
 * never notified: a person may have restarted the worker. A daemon that is killed soon after two notifications is like one that
 * notifications replace. The third notification therefore waits, and only its process shows that notifications replace it, because
 * that process had lived until then.
 * @param now.startedAtMs of the process, epoch milliseconds; undefined where it is not known
 * @returns `notification` where it counts as notified; `unknown` where a notification may have made it
 */
export function processOrigin(
  entry: WorkerLedger,
  { nowMs, startedAtMs }: { readonly nowMs: number; readonly startedAtMs?: number | undefined },
): 'notification' | 'unknown' | 'other' {
  const { state, notifiedAtMs = 0, replacedAtMs } = entry;
  const isSoon = (atMs: number | undefined, untilMs: number): boolean =>
    atMs !== undefined && atMs <= untilMs && untilMs - atMs <= replacedWithinMs;
  // A second process was not made by the same notification.
  if (!hasAnswered(entry) || replacedAtMs !== undefined || !isSoon(entry.notifiedAtMs, nowMs)) return 'other';
  const isMadeByIt = (startedAtMs ?? notifiedAtMs) <= notifiedAtMs + startedWithinMs;
  const isNotified = (state === 'notified' && isMadeByIt) || notifiedAtMs >= aloneAtMs(entry);
  return isNotified ? 'notification' : 'unknown';
}

/** @returns the entry members of the successor of a process that ended soon after its notification */
export function soonReplaced(
  entry: WorkerLedger | undefined,
  nowMs: number,
): Pick<WorkerLedger, 'soonReplacedAtMs' | 'soonReplacements'> {
  return { soonReplacedAtMs: nowMs, soonReplacements: (entry?.soonReplacements ?? 0) + 1 };
}

/** @returns epoch milliseconds before which the successor is not notified; 0 where it may be now */
export function successorAloneAtMs(entry: WorkerLedger | undefined): number {
  const atMs = entry === undefined ? Number.POSITIVE_INFINITY : aloneAtMs(entry);
  return Number.isFinite(atMs) ? atMs : 0;
}

function aloneAtMs({ soonReplacedAtMs, soonReplacements = 0 }: WorkerLedger): number {
  return soonReplacedAtMs === undefined || soonReplacements < soonReplacedTimes
    ? Number.POSITIVE_INFINITY
    : soonReplacedAtMs + replacedWithinMs;
}

/** @returns the text of a worker with another identity than before, which may be the same process on another connection */
export function otherProcessText(before = '', now = ''): string {
  const [known, connection] = before.split('/');
  const isSameProcess = connection !== undefined && now.startsWith(`${known}/`);
  return isSameProcess
    ? 'has connected again, and has not answered since'
    : 'is a different process than before';
}

/** @throws WritError WORKER_DIED for those that answered before and are dead after; `facts.results` has every answer */
export function requireAlive(before: readonly WorkerResult[], after: readonly WorkerResult[]): void {
  const died = after.filter(
    (one, index) => one.state === 'unreachable' && before[index]?.state !== one.state,
  );
  if (died.length > 0) throw refusal('WORKER_DIED', died, after);
}

export interface ReviveOptions {
  readonly groups: readonly WorkerGroup[];
  readonly target: Target;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/**
 * On the way back: restarts who is dead, or refuses what it has used before, where `onDead` says so.
 * @returns the results, with those of the restarted
 * @throws WritError WORKER_DIED, WORKER_REFUSED when even that does not bring one back; WORKER_REFUSED where nobody is
 *   to be restarted
 */
export async function revive(
  results: readonly WorkerResult[],
  options: ReviveOptions,
): Promise<WorkerResult[]> {
  const after: WorkerResult[] = [];
  for (const result of results) after.push(await revived(result, options));
  const refused = after.filter((one) => one.state === 'refused');
  if (refused.length > 0) throw refusal('WORKER_REFUSED', refused, after);
  const gone = after.filter((one, index) => one.state === 'unreachable' && one !== results[index]);
  if (gone.length > 0) throw refusal('WORKER_DIED', gone, after);
  return after;
}

async function revived(
  result: WorkerResult,
  { groups, target, clock }: ReviveOptions,
): Promise<WorkerResult> {
  const { group, worker, text, state } = result;
  const { driver, config } = groups.find((one) => one.config.name === group) ?? {};
  if (config?.onDead !== 'restart' || driver?.restart === undefined) return result;
  const isDead = state === 'unreachable' && (await livenessOf(driver, worker)) === 'dead';
  if (state !== 'refused' && !isDead) return result;
  const timeoutMs = config.reset?.timeoutMs ?? 0;
  const answer = await notifyWorker(driver, worker, { verb: 'restart', target, timeoutMs });
  const said = { ...answer, text: `${text}; restarted: ${answer.text}` };
  return workerResult(group, worker, said, target.generation, clock.nowMs());
}

export interface StartOfFailed {
  readonly target: Target;
  readonly signal?: AbortSignal | undefined;
  readonly onNotify?: ((key: string, verb: NotifyVerb) => void) | undefined;
}

export interface Unanswered {
  readonly worker: string;
  /** What was tried. */
  readonly verb: NotifyVerb | 'none';
  readonly answer: Answer;
}

/**
 * On the way forward: a worker that is dead is started where its supervisor records a failure and `onDead` says so. It was
 * dead before, so that no end of this start is a verdict on the policy.
 * @returns its answer, SUPERVISOR_GAVE_UP with the command where nothing starts it; undefined without a failure on record
 */
export async function startFailed(
  { driver, config }: WorkerGroup,
  { worker, answer }: Unanswered,
  { target, signal, onNotify }: StartOfFailed,
): Promise<Answer | undefined> {
  const failure = await failureOf(driver, worker);
  if (driver === undefined || failure === undefined) return undefined;
  if (config.onDead !== 'restart' || driver.restart === undefined) return gaveUp(answer, failure);
  onNotify?.(workerKey(config.name, worker), 'restart');
  const timeoutMs = config.reset?.timeoutMs ?? 0;
  const said = await notifyWorker(driver, worker, {
    verb: 'restart',
    target,
    timeoutMs,
    ...given({ signal }),
  });
  const text = `${failure.text}; started again: ${said.text}`;
  if (said.kind === 'notified' || said.kind === 'confirmed') return { ...said, text };
  const after = (await failureOf(driver, worker)) ?? failure;
  return gaveUp(unreachable(text), after);
}

async function failureOf(driver: Driver | undefined, worker: string): Promise<SupervisorFailure | undefined> {
  try {
    return await driver?.failure?.(worker);
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

function gaveUp(answer: Answer, { hasGivenUp, text, command }: SupervisorFailure): Answer {
  if (hasGivenUp === 'no') return { ...answer, text: `${answer.text}; ${text}` };
  return { ...unreachable(`${text}; start it with: ${command}`), code: 'SUPERVISOR_GAVE_UP' };
}
