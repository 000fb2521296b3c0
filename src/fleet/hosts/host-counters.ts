// Numbers of hosts by what the first screen counts them by (state, last word, clones, blocks, version, root), changed in the transaction
// that changes a host's row, and counted again from all rows for tests. Retired hosts are in no number, and OPAs in none either.
import type { Kysely } from 'kysely';
import type { HostCounterRow, HostRow, Tables } from '../store/tables.js';
import type { RowWriter } from '../store/write-rows.js';

type Of = Omit<HostCounterRow, 'count'>;

/** What is read of a host to count it. */
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

/** The order of its key, which is that in which numbers are written. */
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

/** Gathers differences of many hosts, so that each number is written once. */
export class HostCounterChanges {
  readonly #changes = new Map<string, { readonly of: Of; by: number }>();

  /** @param host as it was (-1), or as it is (1) */
  add(host: CountedHost, by: 1 | -1): void {
    if (host.state === 'retired' || host.kind !== 'writ') return;
    const key = keyOf(host);
    const change = this.#changes.get(key) ?? { of: ofHost(host), by: 0 };
    change.by += by;
    this.#changes.set(key, change);
  }

  /** Most changes of a host change none of what it is counted by. */
  move(before: CountedHost, after: CountedHost): void {
    if (before.kind === after.kind && keyColumns.every((column) => before[column] === after[column])) return;
    this.add(before, -1);
    this.add(after, 1);
  }

  /** In the order of their keys, as every server writes them. */
  rows(): HostCounterRow[] {
    return [...this.#changes]
      .filter(([, { by }]) => by !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { of, by }]) => ({ ...of, count: by }));
  }
}

export async function writeHostCounters(
  db: Kysely<Tables>,
  writer: RowWriter,
  changes: HostCounterChanges,
): Promise<void> {
  await writer.write(db, 'host_counters', changes.rows(), { key: keyColumns, add: ['count'] });
}

/** @returns the numbers as the rows of hosts give them, sorted: what `host_counters` must say at any time */
export async function recountHosts(db: Kysely<Tables>): Promise<HostCounterRow[]> {
  const rows = await db.selectFrom('hosts').select(countedColumns).where('state', '!=', 'retired').execute();
  const changes = new HostCounterChanges();
  for (const row of rows) changes.add(row, 1);
  return changes.rows();
}

/** @returns what `host_counters` says, sorted as a recount is; numbers that came to nothing are left out */
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
