// Numbers of hosts by (repository, bundle, channel, manifest, state), changed by the difference that a host's rows make, and
// counted again from all rows for tests. A retired or waiting host has no rows of bundles, so that it is in no number.
import type { Kysely } from 'kysely';
import type { CounterRow, HostBundleRow, Tables } from '../store/tables.js';
import type { RowWriter } from '../store/write-rows.js';
import { HostCounterChanges, writeHostCounters } from './host-counters.js';

export const slots = 64;

/** By the key: the same host always changes the same slot, and two hosts seldom wait for each other. */
export function slotOf(keyId: string): number {
  return Number.parseInt(keyId.slice(0, 2), 16) % slots || 0;
}

/** What one bundle of a host counts as: what is active, how far that is in its bake time, and what is offered and is not. */
export function countersOf(row: HostBundleRow, slot: number): Omit<CounterRow, 'count'>[] {
  const { repository, bundle, channel } = row;
  const of = { repository, bundle, channel, slot };
  const active = { ...of, manifest: row.manifest, serial: row.serial, state: `active:${row.state}` };
  const baking = row.bake === '' ? [] : [{ ...active, state: `bake:${row.bake}` }];
  if (row.offered_state === '') return [active, ...baking];
  const state = `offered:${row.offered_state}:${row.offered_code}`;
  return [active, ...baking, { ...of, manifest: '', serial: row.offered_serial, state }];
}

/** Gathers differences of many hosts, so that each number is written once. */
export class CounterChanges {
  readonly #changes = new Map<string, { row: Omit<CounterRow, 'count'>; by: number }>();
  /** Of the hosts themselves. */
  readonly hosts = new HostCounterChanges();

  add(rows: readonly HostBundleRow[], slot: number, by: 1 | -1): void {
    for (const row of rows.flatMap((one) => countersOf(one, slot))) {
      const key = counterKey(row);
      const change = this.#changes.get(key) ?? { row, by: 0 };
      change.by += by;
      this.#changes.set(key, change);
    }
  }

  /** In the order of their keys: two servers that change the same numbers wait for each other, and never in a circle. */
  rows(): CounterRow[] {
    return [...this.#changes]
      .filter(([, { by }]) => by !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { row, by }]) => ({ ...ordered(row), count: by }));
  }
}

/** Once in a transaction, for all that it changes: all servers write numbers in one order. */
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

/** @returns the numbers as the rows of hosts give them, sorted: what `counters` must say at any time */
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

/** @returns what `counters` says, sorted as a recount is; numbers that came to nothing are left out */
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
