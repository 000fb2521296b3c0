// Counters of hosts by (repository, bundle, channel, manifest, state). A change of a host's rows changes them by the difference;
// tests recount them from all rows. Retired and waiting hosts have no rows of bundles, and so are not counted.
import type { Kysely } from 'kysely';
import type { CounterRow, HostBundleRow, Tables } from '../store/tables.js';
import type { RowWriter } from '../store/write-rows.js';
import { HostCounterChanges, writeHostCounters } from './host-counters.js';

export const slots = 64;

/** Derives the slot from the key: a host always changes the same slot, and two hosts seldom wait for each other. */
export function slotOf(keyId: string): number {
  return Number.parseInt(keyId.slice(0, 2), 16) % slots || 0;
}

/** Returns the counters of one bundle of a host: of the active release, of its bake time, and of an offered, inactive release. */
export function countersOf(row: HostBundleRow, slot: number): Omit<CounterRow, 'count'>[] {
  const { repository, bundle, channel } = row;
  const of = { repository, bundle, channel, slot };
  const active = { ...of, manifest: row.manifest, serial: row.serial, state: `active:${row.state}` };
  const baking = row.bake === '' ? [] : [{ ...active, state: `bake:${row.bake}` }];
  if (row.offered_state === '') return [active, ...baking];
  const state = `offered:${row.offered_state}:${row.offered_code}`;
  return [active, ...baking, { ...of, manifest: '', serial: row.offered_serial, state }];
}

/** Sums the changes of many hosts, so that each counter is written once. */
export class CounterChanges {
  readonly #changes = new Map<string, { row: Omit<CounterRow, 'count'>; by: number }>();
  /** Changes of the counters of hosts. */
  readonly hosts = new HostCounterChanges();

  add(rows: readonly HostBundleRow[], slot: number, by: 1 | -1): void {
    for (const row of rows.flatMap((one) => countersOf(one, slot))) {
      const key = counterKey(row);
      const change = this.#changes.get(key) ?? { row, by: 0 };
      change.by += by;
      this.#changes.set(key, change);
    }
  }

  /** Returns the changed counters in the order of their keys, because servers that lock the same counters must not deadlock. */
  rows(): CounterRow[] {
    return [...this.#changes]
      .filter(([, { by }]) => by !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { row, by }]) => ({ ...ordered(row), count: by }));
  }
}

/** Adds all changes of a transaction to the stored counts. Called once in it, because all servers must write in one order. */
export async function writeCounters(
  db: Kysely<Tables>,
  writer: RowWriter,
  changes: CounterChanges,
): Promise<void> {
  await writeHostCounters(db, writer, changes.hosts);
  await writer.write(db, 'counters', changes.rows(), {
    key: ['repository', 'bundle', 'channel', 'manifest', 'serial', 'state', 'slot'],
    add: ['count'],
  });
}

/** @returns the counters computed from the rows of hosts, sorted. `counters` must always equal them. */
export async function recount(db: Kysely<Tables>): Promise<CounterRow[]> {
  const rows = await db
    .selectFrom('host_bundles')
    .innerJoin('hosts', 'hosts.key_id', 'host_bundles.key_id')
    .selectAll('host_bundles')
    .select('hosts.slot')
    .where('hosts.state', '=', 'accepted')
    .where('hosts.kind', '=', 'writ')
    .execute();
  const changes = new CounterChanges();
  for (const { slot, ...row } of rows) changes.add([row], slot, 1);
  return changes.rows();
}

/** @returns the rows of `counters` in the order of a recount, without counters that are 0 */
export async function storedCounters(db: Kysely<Tables>): Promise<CounterRow[]> {
  const rows = await db.selectFrom('counters').selectAll().where('count', '<>', 0).execute();
  const keyed = rows.map(({ count, ...row }) => [counterKey(row), { ...ordered(row), count }] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

function counterKey(row: Omit<CounterRow, 'count'>): string {
  return JSON.stringify(Object.values(ordered(row)));
}

function ordered(row: Omit<CounterRow, 'count'>): Omit<CounterRow, 'count'> {
  const { repository, bundle, channel, manifest, serial, state, slot } = row;
  return { repository, bundle, channel, manifest, serial, state, slot };
}
