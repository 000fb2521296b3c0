// The words that a ledger of before v0.1.0 may hold: what was `told` is `notified`, who was `waiting` is `pending`, a
// disk that was `whole` is `intact`. Read once,
// for the first write keeps the new ones; knows no meaning. Goes with v0.1.0, from which on a format has a number.

const renamedMembers: Readonly<Record<string, string>> = {
  tell: 'notificationId',
  toldAtMs: 'notifiedAtMs',
  loadDue: 'loadPending',
};
const renamedStates: Readonly<Record<string, string>> = { told: 'notified', waiting: 'pending' };

/** @param ledger parsed, not judged yet; @returns the same under the words of today */
export function inTodaysWords(ledger: unknown): unknown {
  if (!isRecord(ledger)) return ledger;
  const { workers, scrub } = ledger;
  const known = isRecord(workers) ? { workers: mapValues(workers, workerInTodaysWords) } : {};
  const looked =
    isRecord(scrub) && scrub['outcome'] === 'whole' ? { scrub: { ...scrub, outcome: 'intact' } } : {};
  return renamed({ ...ledger, ...known, ...looked });
}

function workerInTodaysWords(worker: unknown): unknown {
  if (!isRecord(worker)) return worker;
  const { state } = worker;
  const isFormer = typeof state === 'string' && Object.hasOwn(renamedStates, state);
  return renamed(isFormer ? { ...worker, state: renamedStates[state] } : worker);
}

function renamed(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const nameOf = (name: string): string =>
    Object.hasOwn(renamedMembers, name) ? String(renamedMembers[name]) : name;
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [nameOf(name), value]));
}

function mapValues(record: Readonly<Record<string, unknown>>, change: (value: unknown) => unknown): unknown {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
