// Level, not edge: what each worker is to use and what it last proved, kept in the ledger so that a tell that
// failed stays due across restarts. Owns this part of the ledger; tells nobody.
import type { WorkerResult } from '../core/cycle-report.js';
import type { Host } from './host.js';
import type { Ledger, WorkerLedger } from './ledger.js';
import { type WorkerGroup, workerKey } from './worker-groups.js';

const maxTextCharacters = 500;

/** @returns the ledger in which every known worker of the groups is to use this generation */
export function wantGeneration(
  ledger: Ledger,
  groups: readonly WorkerGroup[],
  generation: number,
  nowMs: number,
): Ledger {
  const names = groups.map((one) => one.config.name);
  const workers = Object.entries(ledger.workers).map(([key, entry]): [string, WorkerLedger] => {
    if (!names.includes(groupOf(key)) || entry.wanted === generation) return [key, entry];
    return [key, { ...entry, wanted: generation, state: 'waiting', text: 'not told yet', atMs: nowMs }];
  });
  return { ...ledger, workers: Object.fromEntries(workers) };
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
  host.ledger.write({ ...ledger, workers });
}

/**
 * Notes an answer that came outside a tell. One about another generation than the worker is to use by now says
 * nothing: it must neither confirm what is active nor make an older generation the wanted one.
 * @param active number of the active generation: what a worker that was never seen is to use
 */
export function noteLateAnswer(host: Pick<Host, 'ledger'>, result: WorkerResult, active?: number): void {
  const wanted = host.ledger.read().workers[workerKey(result.group, result.worker)]?.wanted ?? active;
  if (wanted === result.generation) noteWorkers(host, [result]);
}

function entryOf(result: WorkerResult, known: WorkerLedger | undefined): WorkerLedger {
  const confirmed = result.state === 'confirmed' ? result.generation : known?.confirmed;
  const same = known?.state === result.state && known.wanted === result.generation;
  return {
    wanted: result.generation,
    state: result.state,
    text: result.text.slice(0, maxTextCharacters),
    atMs: same ? known.atMs : result.atMs,
    ...(confirmed === undefined ? {} : { confirmed }),
  };
}

/** @returns keys of the workers that could not be told what they are to use */
export function dueWorkers(ledger: Ledger): ReadonlySet<string> {
  const due = Object.entries(ledger.workers).filter(
    ([, one]) => one.state === 'unreachable' || one.state === 'waiting',
  );
  return new Set(due.map(([key]) => key));
}

/** @returns names of the groups with such a worker: it may hold an older generation still */
export function dueGroups(ledger: Ledger): ReadonlySet<string> {
  return new Set([...dueWorkers(ledger)].map(groupOf));
}

/** Forgets workers that are gone: their group is not configured any more, or no longer lists them. */
export function forgetWorkers(host: Host, isThere: (group: string, worker: string) => boolean): void {
  const ledger = host.ledger.read();
  const entries = Object.entries(ledger.workers).filter(([key]) => {
    const group = groupOf(key);
    return isThere(group, key.slice(group.length + 1));
  });
  if (entries.length === Object.keys(ledger.workers).length) return;
  host.ledger.write({ ...ledger, workers: Object.fromEntries(entries) });
}

function groupOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
