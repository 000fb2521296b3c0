// Counters of hosts by the values that the first page shows (state, agent, clones, blocks, version, root). They change in the
// transaction that changes a host's row; tests recount them from all rows. Retired hosts and OPAs are not counted.
import type { Kysely } from 'kysely';
import type { HostCounterRow, HostRow, Tables } from '../store/tables.js';
import type { RowWriter } from '../store/write-rows.js';

type Of = Omit<HostCounterRow, 'count'>;

/** The columns of a host that its counters depend on. */
export const countedColumns = [
  'kind',
  'state',
  'agent',
  'cloned',
  'blocked',
  'version',
  'root_version',
  'root_digest',
  'slot',
] as const;
export type CountedHost = Pick<HostRow, (typeof countedColumns)[number]>;

/** The columns of a counter's key. Counters are written in the order of these keys. */
const keyColumns = [
  'state',
  'agent',
  'cloned',
  'blocked',
  'version',
  'root_version',
  'root_digest',
  'slot',
] as const;

/** Sums the changes of many hosts, so that each counter is written once. */
export class HostCounterChanges {
  readonly #changes = new Map<string, { readonly of: Of; by: number }>();

  /** @param host its row before the change (with -1) or after it (with 1) */
  add(host: CountedHost, by: 1 | -1): void {
    if (host.state === 'retired' || host.kind !== 'writ') return;
    const key = keyOf(host);
    const change = this.#changes.get(key) ?? { of: ofHost(host), by: 0 };
    change.by += by;
    this.#changes.set(key, change);
  }

  /** Counts a changed host under its new key. Most changes leave the key as it is. */
  move(before: CountedHost, after: CountedHost): void {
    if (before.kind === after.kind && keyColumns.every((column) => before[column] === after[column])) return;
    this.add(before, -1);
    this.add(after, 1);
  }

  /** Returns the changed counters in the order of their keys. All servers write in this order. */
  rows(): HostCounterRow[] {
    return [...this.#changes]
      .filter(([, { by }]) => by !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { of, by }]) => ({ ...of, count: by }));
  }
}

/**
 * Adds the changes to the rows of `host_counters`, in the transaction that `db` is. Writes nothing without changes.
 * @throws WritError FLEET_STORE_*
 */
export async function writeHostCounters(
  db: Kysely<Tables>,
  writer: RowWriter,
  changes: HostCounterChanges,
): Promise<void> {
  await writer.write(db, 'host_counters', changes.rows(), { key: keyColumns, add: ['count'] });
}

/** @returns the counters computed from the rows of hosts, sorted. `host_counters` must always equal them. */
export async function recountHosts(db: Kysely<Tables>): Promise<HostCounterRow[]> {
  const rows = await db.selectFrom('hosts').select(countedColumns).where('state', '!=', 'retired').execute();
  const changes = new HostCounterChanges();
  for (const row of rows) changes.add(row, 1);
  return changes.rows();
}

/** @returns the rows of `host_counters` in the order of a recount, without counters that are 0 */
export async function storedHostCounters(db: Kysely<Tables>): Promise<HostCounterRow[]> {
  const rows = await db.selectFrom('host_counters').selectAll().where('count', '<>', 0).execute();
  const keyed = rows.map(({ count, ...of }) => [keyOf(of), { ...ofHost(of), count }] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

function keyOf(of: Of): string {
  return JSON.stringify(keyColumns.map((column) => of[column]));
}

function ofHost({ state, agent, cloned, blocked, version, root_version, root_digest, slot }: Of): Of {
  return { state, agent, cloned, blocked, version, root_version, root_digest, slot };
}
