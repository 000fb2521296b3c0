// Level, not edge: what each worker is to use and what it last proved, kept in the ledger so that a notification that
// failed stays pending across restarts. Owns this part of the ledger; notifies nobody and asks no driver.
import { computeBackoffMs } from '../../core/backoff.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { given } from '../../core/given.js';
import { steadyNotNowMs } from '../../core/limits.js';
import { unknownAnswerText } from '../../core/status/worker-rules.js';
import type { NotifyVerb } from '../../workers/contract/notify-worker.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { type Ledger, ledgerSection, type UnreadSet, type WorkerLedger } from '../state/ledger.js';
import { secondProbeAfter, settledCounts, unheard } from './repeated-probe-rules.js';

const changeWorkers = ledgerSection('workers', 'unreadSets', 'movedAtMs');

const maxTextCharacters = 500;
const notNotifiedText = 'not notified yet';
const backoff = { firstMs: 5000, maxMs: 300_000 };

/** @returns milliseconds until a worker is notified again after so many tries in vain: 5 s doubling to 5 min */
export function notifyDelayMs(tries: number): number {
  return computeBackoffMs(tries, backoff);
}

export interface Wanted {
  readonly generation: number;
  readonly nowMs: number;
  /** How each takes it over from what it uses now: who needs a restart for it owes one until it answers. */
  readonly verbOf: VerbOf;
}

/** @returns the ledger in which every known worker of the groups is to use this generation, from now on */
export function wantGeneration(
  ledger: Ledger,
  groups: readonly WorkerGroup[],
  { generation, nowMs, verbOf }: Wanted,
): Ledger {
  const workers = Object.entries(ledger.workers).map(([key, entry]): [string, WorkerLedger] => {
    const group = groups.find((one) => one.config.name === groupOf(key));
    if (group === undefined || entry.wanted === generation) return [key, entry];
    const next = pending(entry, { wanted: generation, text: notNotifiedText, nowMs });
    return [key, verbOf(group, workerOf(key)) === 'restart' ? { ...next, owed: 'restart' } : next];
  });
  const paced = groups.filter((one) => one.config.minIntervalMs !== undefined);
  const moved = Object.fromEntries(paced.map((one) => [one.config.name, nowMs]));
  return changeWorkers(withWorkers(ledger, workers), {
    ...(paced.length === 0 ? {} : { movedAtMs: { ...ledger.movedAtMs, ...moved } }),
  });
}

/** A person has mended what made them refuse: what they said before is no reason any more to leave what is active. */
export function withRefusedAskedAgain(ledger: Ledger, nowMs: number): Ledger {
  const refused = Object.entries(ledger.workers).filter(([, { state }]) => state === 'refused');
  const text = notNotifiedText;
  return withWorkers(
    ledger,
    refused.map(([key, one]) => [key, pending(one, { wanted: one.wanted, text, nowMs })] as const),
  );
}

/** @param workers by key; @returns the ledger with these entries, and all others as they are */
export function withWorkers(ledger: Ledger, workers: readonly (readonly [string, WorkerLedger])[]): Ledger {
  return changeWorkers(ledger, { workers: { ...ledger.workers, ...Object.fromEntries(workers) } });
}

/** @returns the ledger as a look over all sets has found it: who is not in it is known no more */
export function withSets(ledger: Ledger, { workers, unread }: Sets): Ledger {
  const unreadSets = unread.length === 0 ? undefined : Object.fromEntries(unread);
  return changeWorkers(ledger, { workers, unreadSets });
}

interface Sets extends Pick<Ledger, 'workers'> {
  readonly unread: readonly (readonly [string, UnreadSet])[];
}

/** A worker of which nobody knows what it uses: it is pending at once, whatever became of the notifications before. */
export function pending(
  known: WorkerLedger | undefined,
  now: { readonly wanted: number; readonly text: string; readonly nowMs: number },
): WorkerLedger {
  const { confirmed, process, goneAtMs, owed } = known ?? {};
  const { wanted, text, nowMs: atMs } = now;
  const probed = known?.wanted === wanted ? settledCounts(known.probed) : undefined;
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

/** Notes what workers said; a worker that was never seen before is added. */
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

/** @returns the ledger in which the notification of these workers has begun, where they waited for it */
export function withNotificationBegun(ledger: Ledger, keys: readonly string[], nowMs: number): Ledger {
  const begun = keys.flatMap((key): [string, WorkerLedger][] => {
    const entry = ledger.workers[key];
    if (entry?.state !== 'pending' || entry.text !== notNotifiedText) return [];
    return [[key, { ...entry, text: unknownAnswerText, atMs: nowMs }]];
  });
  return withWorkers(ledger, begun);
}

/** More than a set may have, with those that are gone. */
const maxWorkersOfGroup = 2048;

/** Notes the sets that a move could not read: until they are, nobody knows who uses what. */
export function noteUnread(host: Pick<Host, 'ledger' | 'clock'>, unread: ReadonlyMap<string, string>): void {
  if (unread.size === 0) return;
  const ledger = host.ledger.read();
  const { unreadSets = {} } = ledger;
  const found = [...unread].map(([name, text]): [string, UnreadSet] => {
    return [name, { text, sinceMs: unreadSets[name]?.sinceMs ?? host.clock.nowMs() }];
  });
  host.ledger.write(changeWorkers(ledger, { unreadSets: { ...unreadSets, ...Object.fromEntries(found) } }));
}

/**
 * Notes an answer that came outside a notification. One about another generation than the worker is to use by now says
 * nothing: it must neither confirm what is active nor make an older generation the wanted one.
 * @param active number of the active generation: what a worker that was never seen is to use
 */
export function noteLateAnswer(host: Pick<Host, 'ledger'>, result: WorkerResult, active?: number): void {
  const { workers } = host.ledger.read();
  const known = workers[workerKey(result.group, result.worker)];
  // Who stays is found with its set, and notified; whoever comes under ever new names must not fill the ledger.
  const others = Object.keys(workers).filter((key) => groupOf(key) === result.group);
  if (known === undefined && others.length >= maxWorkersOfGroup) return;
  // A driver hands on the answer to its last notification alone, so that it is that one which is answered.
  const { notificationId, process } = known ?? {};
  // Nor was its probe heard by it.
  const silence = known?.wanted === result.generation ? known.probed?.silence : undefined;
  const own = {
    ...(notificationId === undefined ? {} : { notificationId }),
    ...(process === undefined ? {} : { process }),
    ...(silence === undefined ? {} : { silence }),
  };
  // A worker whose group the last move did not concern is notified of what is active when it connects again.
  if ([known?.wanted, active].includes(result.generation)) noteWorkers(host, [{ ...own, ...result }]);
}

function entryOf(result: WorkerResult, known: WorkerLedger | undefined): WorkerLedger {
  const { generation, atMs, notificationId, process, provenAtMs } = result;
  const secondProbe = secondProbeAfter(result, known);
  const state = secondProbe !== undefined && result.state === 'confirmed' ? 'notified' : result.state;
  const isSame = known?.state === state && known.wanted === generation && isSameProcess(known, process);
  const before = known?.wanted === generation ? known.probed : undefined;
  // Who was only notified proved nothing against its probe.
  const probed = state === 'confirmed' ? settledCounts(before) : before;
  return withoutUnknown({
    wanted: generation,
    state,
    text: result.text.slice(0, maxTextCharacters),
    // A probe proves later than the worker was notified.
    atMs: (state === 'confirmed' ? provenAtMs : undefined) ?? (isSame ? known.atMs : atMs),
    confirmed: state === 'confirmed' ? generation : known?.confirmed,
    accepted: hasAnswered(result) ? generation : known && acceptedGeneration(known),
    process,
    soonReplacedAtMs: known?.soonReplacedAtMs,
    soonReplacements: known?.soonReplacements,
    lives: result.lives,
    notNowSinceMs: notNowSince(result, known),
    code: result.code,
    secondProbe,
    owed: hasAnswered(result) ? undefined : known?.owed,
    probed: result.silence === undefined ? probed : unheard(probed, result.silence),
    ...(notificationId === undefined ? {} : { notificationId, notifiedAtMs: atMs }),
    ...(state === 'unreachable' ? inVain(result, known) : {}),
  });
}

/** True also where no process is known. Another process has a proof of its own, since its own answer. */
function isSameProcess(known: WorkerLedger, process: string | undefined): boolean {
  return known.process === undefined || process === undefined || known.process === process;
}

/** A clock that was set back since must not make the time endless. */
function notNowSince({ notNow, generation, atMs }: WorkerResult, known?: WorkerLedger): number | undefined {
  if (notNow !== 'yes') return undefined;
  const sinceMs = known?.wanted === generation ? known.notNowSinceMs : undefined;
  return Math.min(sinceMs ?? atMs, atMs);
}

/** True where a worker has said "not now" for so short a time that it is asked at a steady pace. */
function isBusyForNow({ notNowSinceMs }: Pick<WorkerLedger, 'notNowSinceMs'>, nowMs: number): boolean {
  return notNowSinceMs !== undefined && nowMs - notNowSinceMs < steadyNotNowMs;
}

/** The same notification may be noted more than once, as by the step and by the commit: it was one try. */
function inVain(
  result: WorkerResult,
  known: WorkerLedger | undefined,
): Pick<WorkerLedger, 'tries' | 'notifiedAtMs'> {
  const { atMs, generation, notificationId } = result;
  const notNowSinceMs = notNowSince(result, known);
  // The first gap each time, as long as it is merely busy.
  if (isBusyForNow(given({ notNowSinceMs }), atMs)) return { tries: 1, notifiedAtMs: atMs };
  const {
    tries = 0,
    notifiedAtMs = atMs,
    notificationId: before,
  } = known?.wanted === generation ? known : {};
  return tries > 0 && before === notificationId
    ? { tries, notifiedAtMs }
    : { tries: tries + 1, notifiedAtMs: atMs };
}

/** @returns when a worker is notified again that was notified in vain, epoch milliseconds; undefined for any other */
export function nextNotificationAtMs({ tries, notifiedAtMs }: WorkerLedger): number | undefined {
  return tries === undefined || notifiedAtMs === undefined ? undefined : notifiedAtMs + notifyDelayMs(tries);
}

/** It refuses what no way back would take from it: it may have been repaired. */
export function refusesInVain(worker: WorkerLedger, { previous }: Pick<Ledger, 'previous'>): boolean {
  const { state, goneAtMs, confirmed, wanted } = worker;
  return state === 'refused' && goneAtMs === undefined && (confirmed === wanted || previous === undefined);
}

/** It could not be notified of what it is to use; who is gone is notified when it is back. */
export function isPending(worker: WorkerLedger): boolean {
  return worker.goneAtMs === undefined && (worker.state === 'unreachable' || worker.state === 'pending');
}

/** A time further away than any wait was noted by a clock that was set back since. */
export function isTurn(worker: WorkerLedger, nowMs: number): boolean {
  const atMs = nextNotificationAtMs(worker) ?? nowMs;
  return atMs <= nowMs || atMs > nowMs + backoff.maxMs;
}

/** @returns keys of the workers that are pending, and whose turn it is */
export function notifiableWorkers(ledger: Ledger, nowMs: number): ReadonlySet<string> {
  const pending = Object.entries(ledger.workers).filter(([, one]) => isPending(one) && isTurn(one, nowMs));
  return new Set(pending.map(([key]) => key));
}

/** @returns names of the groups with a worker, also a gone one, that may hold another generation than it is to use */
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

/** @returns the generation that a worker last took, by its own answer; undefined where it took none */
export function acceptedGeneration(worker: WorkerLedger): number | undefined {
  const { accepted, confirmed, wanted } = worker;
  // Ledgers of older versions have the last answer alone.
  return accepted ?? (hasAnswered(worker) ? wanted : confirmed);
}

/** It has taken a generation over, or said nothing against it. */
export function hasAnswered({ state }: Pick<WorkerLedger, 'state'>): boolean {
  return state === 'notified' || state === 'confirmed';
}

export type VerbOf = (group: WorkerGroup, worker: string) => NotifyVerb;
