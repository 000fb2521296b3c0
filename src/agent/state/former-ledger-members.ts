// Renames the members and values of a ledger from before 0.1.0: `told` is `notified` today, `waiting` is `pending`, and the
// scrub outcome `whole` is `intact`. The first write of the ledger stores the new names. Validates nothing.

const renamedMembers: Readonly<Record<string, string>> = {
  tell: 'notificationId',
  toldAtMs: 'notifiedAtMs',
  loadDue: 'loadPending',
};
const renamedStates: Readonly<Record<string, string>> = { told: 'notified', waiting: 'pending' };

/** @param ledger parsed, not validated yet. @returns a copy with the present names; a value that is no object as it is */
export function renameFormerMembers(ledger: unknown): unknown {
  if (!isRecord(ledger)) return ledger;
  const { workers, scrub } = ledger;
  const renamedWorkers = isRecord(workers) ? { workers: mapValues(workers, renameWorkerMembers) } : {};
  const renamedScrub =
    isRecord(scrub) && scrub['outcome'] === 'whole' ? { scrub: { ...scrub, outcome: 'intact' } } : {};
  return renameMembers({ ...ledger, ...renamedWorkers, ...renamedScrub });
}

function renameWorkerMembers(worker: unknown): unknown {
  if (!isRecord(worker)) return worker;
  const { state } = worker;
  const isFormer = typeof state === 'string' && Object.hasOwn(renamedStates, state);
  return renameMembers(isFormer ? { ...worker, state: renamedStates[state] } : worker);
}

function renameMembers(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
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
