// Owner of `workers` in the ledger: the generation that each worker must use, and its last answer. A failed notification stays
// pending across restarts of the agent. Sends no notification and calls no driver.
import { computeBackoffMs } from '../../core/backoff.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { given } from '../../core/given.js';
import { steadyNotNowMs } from '../../core/limits.js';
import { unknownAnswerText } from '../../core/status/worker-rules.js';
import type { NotifyVerb } from '../../workers/contract/notify-worker.js';
import { keptNotice } from '../settled/runs-rules.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { type Ledger, ledgerSection, type UnreadSet, type WorkerLedger } from '../state/ledger.js';
import { countsAfterProof, secondProbeAfter, withProbeSilence } from './repeated-probe-rules.js';

const changeWorkers = ledgerSection('workers', 'unreadSets', 'movedAtMs');

const maxTextCharacters = 500;
const notNotifiedText = 'not notified yet';
const backoff = { firstMs: 5000, maxMs: 300_000 };

/** @param tries failed attempts. @returns the backoff in milliseconds: 5 s, doubled up to 5 min */
export function notifyDelayMs(tries: number): number {
  return computeBackoffMs(tries, backoff);
}

export interface WantedGeneration {
  readonly generation: number;
  readonly nowMs: number;
  /** The verb for each worker; a restart stays a pending action until the worker answers. */
  readonly verbOf: VerbOf;
}

/** @returns the ledger in which every known worker of the groups must use this generation */
export function withWantedGeneration(
  ledger: Ledger,
  groups: readonly WorkerGroup[],
  { generation, nowMs, verbOf }: WantedGeneration,
): Ledger {
  const workers = Object.entries(ledger.workers).map(([key, entry]): [string, WorkerLedger] => {
    const group = groups.find((one) => one.config.name === groupOf(key));
    if (group === undefined || entry.wanted === generation) return [key, entry];
    const next = pendingEntry(entry, { wanted: generation, text: notNotifiedText, nowMs });
    return [key, verbOf(group, workerOf(key)) === 'restart' ? { ...next, owed: 'restart' } : next];
  });
  const paced = groups.filter((one) => one.config.minIntervalMs !== undefined);
  const moved = Object.fromEntries(paced.map((one) => [one.config.name, nowMs]));
  return changeWorkers(withWorkers(ledger, workers), {
    ...(paced.length === 0 ? {} : { movedAtMs: { ...ledger.movedAtMs, ...moved } }),
  });
}

/** @returns the ledger with refused workers as pending: an operator fixed the cause, so the old refusals do not count */
export function withRefusedPending(ledger: Ledger, nowMs: number): Ledger {
  const refused = Object.entries(ledger.workers).filter(([, { state }]) => state === 'refused');
  const text = notNotifiedText;
  return withWorkers(
    ledger,
    refused.map(([key, one]) => [key, pendingEntry(one, { wanted: one.wanted, text, nowMs })] as const),
  );
}

/** @param workers entries by key. @returns the ledger with these entries added or replaced */
export function withWorkers(ledger: Ledger, workers: readonly (readonly [string, WorkerLedger])[]): Ledger {
  return changeWorkers(ledger, { workers: { ...ledger.workers, ...Object.fromEntries(workers) } });
}

/** @returns the ledger with exactly these workers and unread groups; other workers are removed */
export function withMembers(ledger: Ledger, { workers, unread }: RefreshedMembers): Ledger {
  const unreadSets = unread.length === 0 ? undefined : Object.fromEntries(unread);
  return changeWorkers(ledger, { workers, unreadSets });
}

interface RefreshedMembers extends Pick<Ledger, 'workers'> {
  readonly unread: readonly (readonly [string, UnreadSet])[];
}

/** @returns the pending entry of a worker that uses an unknown generation; it is due at once, without an earlier backoff */
export function pendingEntry(
  known: WorkerLedger | undefined,
  now: { readonly wanted: number; readonly text: string; readonly nowMs: number },
): WorkerLedger {
  const { confirmed, process, goneAtMs, owed } = known ?? {};
  const { wanted, text, nowMs: atMs } = now;
  const probed = known?.wanted === wanted ? countsAfterProof(known.probed) : undefined;
  const accepted = known && acceptedGeneration(known);
  const secondProbe = known?.wanted === wanted ? known.secondProbe : undefined;
  const kept = { confirmed, accepted, process, owed, goneAtMs, probed, secondProbe };
  return withoutUnknown({ wanted, state: 'pending', text, atMs, ...kept });
}

type Entry = { readonly [K in keyof WorkerLedger]: WorkerLedger[K] | undefined };

function withoutUnknown(
  entry: Entry & Pick<WorkerLedger, 'wanted' | 'state' | 'text' | 'atMs'>,
): WorkerLedger {
  const known = Object.entries(entry).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as unknown as WorkerLedger;
}

/** Records results in the ledger; adds workers that are not in it yet. */
export function noteWorkers(host: Pick<Host, 'ledger'>, results: readonly WorkerResult[]): void {
  if (results.length === 0) return;
  const ledger = host.ledger.read();
  const workers = { ...ledger.workers };
  for (const result of results) {
    const key = workerKey(result.group, result.worker);
    workers[key] = entryOf(result, workers[key]);
  }
  host.ledger.write(changeWorkers(ledger, { workers }));
}

/** @returns the ledger in which the notification of these workers has begun, if they were not notified yet */
export function withNotificationBegun(ledger: Ledger, keys: readonly string[], nowMs: number): Ledger {
  const begun = keys.flatMap((key): [string, WorkerLedger][] => {
    const entry = ledger.workers[key];
    if (entry?.state !== 'pending' || entry.text !== notNotifiedText) return [];
    return [[key, { ...entry, text: unknownAnswerText, atMs: nowMs }]];
  });
  return withWorkers(ledger, begun);
}

/** More than a group may have, departed members included. */
const maxWorkersOfGroup = 2048;

/** Records the groups with members that a move could not list; they are pending until that succeeds. */
export function noteUnreadGroups(
  host: Pick<Host, 'ledger' | 'clock'>,
  unread: ReadonlyMap<string, string>,
): void {
  if (unread.size === 0) return;
  const ledger = host.ledger.read();
  const { unreadSets = {} } = ledger;
  const found = [...unread].map(([name, text]): [string, UnreadSet] => {
    return [name, { text, sinceMs: unreadSets[name]?.sinceMs ?? host.clock.nowMs() }];
  });
  host.ledger.write(changeWorkers(ledger, { unreadSets: { ...unreadSets, ...Object.fromEntries(found) } }));
}

/**
 * Records an answer that came outside a notification. Ignores an answer about a generation that the worker must not use now:
 * it must neither confirm the active generation nor make an older one the wanted one.
 * @param active number of the active generation, which an unknown worker must use
 */
export function noteLateAnswer(host: Pick<Host, 'ledger'>, result: WorkerResult, active?: number): void {
  const { workers } = host.ledger.read();
  const known = workers[workerKey(result.group, result.worker)];
  // Workers that connect under always new names must not fill the ledger. A refresh of the members finds the lasting ones.
  const others = Object.keys(workers).filter((key) => groupOf(key) === result.group);
  if (known === undefined && others.length >= maxWorkersOfGroup) return;
  // A driver passes on only the answer to its last notification, so the answer belongs to that notification id.
  const { notificationId, process } = known ?? {};
  // The answer does not replace the missing verdict of the probe.
  const silence = known?.wanted === result.generation ? known.probed?.silence : undefined;
  const own = {
    ...(notificationId === undefined ? {} : { notificationId }),
    ...(process === undefined ? {} : { process }),
    ...(silence === undefined ? {} : { silence }),
  };
  // The driver notifies a reconnecting worker of the active generation, even if the last move did not affect its group.
  if ([known?.wanted, active].includes(result.generation)) noteWorkers(host, [{ ...own, ...result }]);
}

function entryOf(result: WorkerResult, known: WorkerLedger | undefined): WorkerLedger {
  const { generation, atMs, notificationId, process, provenAtMs } = result;
  const secondProbe = secondProbeAfter(result, known);
  const state = secondProbe !== undefined && result.state === 'confirmed' ? 'notified' : result.state;
  const isSame = known?.state === state && known.wanted === generation && isSameProcess(known, process);
  const before = known?.wanted === generation ? known.probed : undefined;
  // Only a confirmation clears the failures of the probe.
  const probed = state === 'confirmed' ? countsAfterProof(before) : before;
  return withoutUnknown({
    wanted: generation,
    state,
    text: result.text.slice(0, maxTextCharacters),
    // A probe confirms later than the worker was notified.
    atMs: (state === 'confirmed' ? provenAtMs : undefined) ?? (isSame ? known.atMs : atMs),
    confirmed: state === 'confirmed' ? generation : known?.confirmed,
    accepted: hasAnswered(result) ? generation : known && acceptedGeneration(known),
    process,
    followsNotified: keptNotice(known, process),
    soonReplacedAtMs: known?.soonReplacedAtMs,
    soonReplacements: known?.soonReplacements,
    lives: result.lives,
    notNowSinceMs: notNowSince(result, known),
    code: result.code,
    secondProbe,
    owed: hasAnswered(result) ? undefined : known?.owed,
    probed: result.silence === undefined ? probed : withProbeSilence(probed, result.silence),
    ...(notificationId === undefined ? {} : { notificationId, notifiedAtMs: atMs }),
    ...(state === 'unreachable' ? countFailedAttempt(result, known) : {}),
  });
}

/** True also if a process is unknown. A different process is confirmed only since its own answer. */
function isSameProcess(known: WorkerLedger, process: string | undefined): boolean {
  return known.process === undefined || process === undefined || known.process === process;
}

/** At most `atMs`, because otherwise a clock that was set back would make the wait endless. */
function notNowSince({ notNow, generation, atMs }: WorkerResult, known?: WorkerLedger): number | undefined {
  if (notNow !== 'yes') return undefined;
  const sinceMs = known?.wanted === generation ? known.notNowSinceMs : undefined;
  return Math.min(sinceMs ?? atMs, atMs);
}

/** @returns true while deferrals are recent enough for attempts at a fixed interval, without a growing backoff */
function isSteadyRetry({ notNowSinceMs }: Pick<WorkerLedger, 'notNowSinceMs'>, nowMs: number): boolean {
  return notNowSinceMs !== undefined && nowMs - notNowSinceMs < steadyNotNowMs;
}

/** Counts a failed attempt once, although the step and the commit both record the same notification. */
function countFailedAttempt(
  result: WorkerResult,
  known: WorkerLedger | undefined,
): Pick<WorkerLedger, 'tries' | 'notifiedAtMs'> {
  const { atMs, generation, notificationId } = result;
  const notNowSinceMs = notNowSince(result, known);
  // A busy worker keeps the first gap.
  if (isSteadyRetry(given({ notNowSinceMs }), atMs)) return { tries: 1, notifiedAtMs: atMs };
  const {
    tries = 0,
    notifiedAtMs = atMs,
    notificationId: before,
  } = known?.wanted === generation ? known : {};
  return tries > 0 && before === notificationId
    ? { tries, notifiedAtMs }
    : { tries: tries + 1, notifiedAtMs: atMs };
}

/** @returns epoch milliseconds of the next attempt after a failed one; undefined without a failed attempt */
export function nextNotificationAtMs({ tries, notifiedAtMs }: WorkerLedger): number | undefined {
  return tries === undefined || notifiedAtMs === undefined ? undefined : notifiedAtMs + notifyDelayMs(tries);
}

/** @returns true for a refusal that causes no restore; such a worker may accept the generation after a repair */
export function isRefusalWithoutRestore(
  worker: WorkerLedger,
  { previous }: Pick<Ledger, 'previous'>,
): boolean {
  const { state, goneAtMs, confirmed, wanted } = worker;
  return state === 'refused' && goneAtMs === undefined && (confirmed === wanted || previous === undefined);
}

/** @returns true for a member that has not answered for its wanted generation; a departed one is notified when it is back */
export function isPending(worker: WorkerLedger): boolean {
  return worker.goneAtMs === undefined && (worker.state === 'unreachable' || worker.state === 'pending');
}

/** @returns true if the next attempt is due. A time beyond the longest backoff is from before the clock was set back */
export function isBackoffOver(worker: WorkerLedger, nowMs: number): boolean {
  const atMs = nextNotificationAtMs(worker) ?? nowMs;
  return atMs <= nowMs || atMs > nowMs + backoff.maxMs;
}

/** @returns keys of the pending workers with no backoff left */
export function notifiableWorkers(ledger: Ledger, nowMs: number): ReadonlySet<string> {
  const pending = Object.entries(ledger.workers).filter(
    ([, one]) => isPending(one) && isBackoffOver(one, nowMs),
  );
  return new Set(pending.map(([key]) => key));
}

/** @returns names of the groups with a worker, departed or not, that may not use its wanted generation */
export function pendingGroups(ledger: Ledger): ReadonlySet<string> {
  const pending = Object.entries(ledger.workers).filter(
    ([, one]) => one.state === 'unreachable' || one.state === 'pending' || one.state === 'refused',
  );
  return new Set([...pending.map(([key]) => groupOf(key)), ...Object.keys(ledger.unreadSets ?? {})]);
}

/** @returns the name of the group in a key of `workers` */
export function groupOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}

/** @returns the name of the worker in a key of `workers` */
export function workerOf(key: string): string {
  return key.slice(key.indexOf('/') + 1);
}

/** A worker's name in the ledger and in messages. */
export function workerKey(group: string, worker: string): string {
  return `${group}/${worker}`;
}

/** @returns the generation that a worker last accepted by its own answer; undefined if it accepted none */
export function acceptedGeneration(worker: WorkerLedger): number | undefined {
  const { accepted, confirmed, wanted } = worker;
  // Ledgers of older versions have the last answer alone.
  return accepted ?? (hasAnswered(worker) ? wanted : confirmed);
}

/** @returns true if the worker accepted the generation: it confirmed it, or was notified without a refusal */
export function hasAnswered({ state }: Pick<WorkerLedger, 'state'>): boolean {
  return state === 'notified' || state === 'confirmed';
}

export type VerbOf = (group: WorkerGroup, worker: string) => NotifyVerb;
