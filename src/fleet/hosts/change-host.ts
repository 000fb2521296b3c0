// Approves or retires a host, for an operator or a sweep. A retired host leaves every counter at once, and its key is never accepted
// again. Its row and its audit entries stay.
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import { retiredOpaHint } from '../../core/fleet/host-names.js';
import type { RetiredHosts } from '../../core/fleet/token-answers.js';
import { endIntervals } from '../intervals/write-intervals.js';
import { addAudit } from '../store/audit.js';
import { storeError } from '../store/store-errors.js';
import type { HostRow, Tables } from '../store/tables.js';
import { transact } from '../store/transact.js';
import { RowWriter } from '../store/write-rows.js';
import { type AuditedChange, requireToken } from '../tokens/tokens.js';
import { CounterChanges, writeCounters } from './counter-changes.js';
import { type CountedHost, countedColumns } from './host-counters.js';

/**
 * Changes a waiting host to accepted, with its counters and an audit entry. Does nothing for an accepted host.
 * @throws FLEET_HOST_UNKNOWN, FLEET_KEY_RETIRED; FLEET_STORE_BUSY if concurrent changes made each attempt fail
 */
export async function approveHost(
  db: Kysely<Tables>,
  keyId: string,
  { who, nowMs }: AuditedChange,
): Promise<void> {
  await transact(db, async (trx) => {
    const host = await findHost(trx, keyId);
    if (host.state === 'accepted') return;
    if (host.state === 'retired') throw retiredError(host);
    const counters = new CounterChanges();
    await setState(trx, host, 'accepted', counters);
    await writeCounters(trx, new RowWriter(), counters);
    await addAudit(trx, { atMs: nowMs, who, what: 'host.approve', subject: keyId, detail: host.host });
  });
}

/** @returns the error for a retired host. An OPA has its own hint, because it has no key. */
export function retiredError({ kind }: Pick<HostRow, 'kind'>): WritError {
  if (kind !== 'opa') return new WritError('FLEET_KEY_RETIRED', 'the host was retired');
  return new WritError('FLEET_KEY_RETIRED', 'this OPA was retired', { hint: retiredOpaHint });
}

/** @throws FLEET_HOST_UNKNOWN; FLEET_STORE_BUSY if concurrent changes made each attempt fail */
export async function retireHost(
  db: Kysely<Tables>,
  keyId: string,
  { who, nowMs, what = 'host.retire' }: AuditedChange & { readonly what?: string },
): Promise<void> {
  await transact(db, async (trx) => {
    const counters = new CounterChanges();
    await retireIn(trx, keyId, { who, nowMs, what }, counters);
    await writeCounters(trx, new RowWriter(), counters);
  });
}

/** Hosts of one transaction, because reports of these hosts wait for its end. */
const maxHostsAtOnce = 50;

/**
 * Retires hosts that a token enrolled, also waiting ones, in the order of their keys. One call retires a bounded number.
 * @param tokenId of a token of any kind, revoked or not
 * @param afterKey the `afterKey` of the previous call; '' for the first
 * @returns how many were retired; `afterKey` if there may be more
 * @throws FLEET_TOKEN_UNKNOWN; FLEET_STORE_BUSY if concurrent changes made each attempt fail
 */
export async function retireHostsOf(
  db: Kysely<Tables>,
  tokenId: string,
  { who, nowMs, afterKey }: AuditedChange & { readonly afterKey: string },
): Promise<RetiredHosts> {
  return transact(db, async (trx) => {
    await requireToken(trx, tokenId);
    const hosts = await trx
      .selectFrom('hosts')
      .select('key_id')
      .where('token_id', '=', tokenId)
      .where('state', '<>', 'retired')
      .where('key_id', '>', afterKey)
      .orderBy('key_id')
      .limit(maxHostsAtOnce)
      .execute();
    const counters = new CounterChanges();
    for (const { key_id } of hosts)
      await retireIn(trx, key_id, { who, nowMs, what: 'host.retire' }, counters);
    await writeCounters(trx, new RowWriter(), counters);
    const last = hosts.at(maxHostsAtOnce - 1);
    return { retired: hosts.length, ...(last === undefined ? {} : { afterKey: last.key_id }) };
  });
}

/** Retires a host in a transaction of the caller, which writes the counters at its end. */
export async function retireIn(
  trx: Kysely<Tables>,
  keyId: string,
  { who, nowMs, what }: AuditedChange & { readonly what: string },
  counters: CounterChanges,
): Promise<void> {
  const host = await findHost(trx, keyId);
  if (host.state === 'retired') return;
  // Change the row first: a concurrent change of this host then waits for it, or fails and is retried.
  await setState(trx, host, 'retired', counters);
  const bundles = await trx.selectFrom('host_bundles').selectAll().where('key_id', '=', keyId).execute();
  await trx.deleteFrom('host_bundles').where('key_id', '=', keyId).execute();
  await endIntervals(trx, keyId, nowMs);
  if (host.kind === 'writ') counters.add(bundles, host.slot, -1);
  await addAudit(trx, { atMs: nowMs, who, what, subject: keyId, detail: host.host });
}

type Found = CountedHost & Pick<HostRow, 'key_id' | 'host' | 'revision'>;

async function findHost(trx: Kysely<Tables>, keyId: string): Promise<Found> {
  const columns = ['key_id', 'host', 'revision', ...countedColumns] as const;
  const host = await trx.selectFrom('hosts').select(columns).where('key_id', '=', keyId).executeTakeFirst();
  if (host === undefined)
    throw new WritError('FLEET_HOST_UNKNOWN', `there is no host with the key ${keyId.slice(0, 80)}`);
  return host;
}

async function setState(
  trx: Kysely<Tables>,
  host: Found,
  state: HostRow['state'],
  counters: CounterChanges,
): Promise<void> {
  const { key_id, revision } = host;
  const changed = await trx
    .updateTable('hosts')
    .set({ state, revision: revision + 1 })
    .where('key_id', '=', key_id)
    .where('revision', '=', revision)
    .executeTakeFirst();
  if (changed.numUpdatedRows !== 1n) throw storeError('40001', 'the host was changed meanwhile');
  counters.hosts.move(host, { ...host, state });
}
