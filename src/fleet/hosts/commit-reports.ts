// Writes the reports of a batch in one transaction: rows of hosts, bundles, labels and outcomes, and the changes of the counters.
// Rows are read first and written only if no other server changed them since (`revision`). So the counters equal a recount of
// the rows, also with several servers on one database. report-plan.ts decides.
import { randomBytes } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { ReportedState } from '../intervals/interval-rules.js';
import { writeIntervals } from '../intervals/write-intervals.js';
import { type AuditEntry, addAudit } from '../store/audit.js';
import { keepNewest } from '../store/keep-newest.js';
import { paddedKeys } from '../store/padded-keys.js';
import { storeError } from '../store/store-errors.js';
import type { HostBundleRow, HostRow, Tables, TokenRow } from '../store/tables.js';
import { transactOnce, whileBusy } from '../store/transact.js';
import type { RowWriter } from '../store/write-rows.js';
import { coversHost } from '../tokens/token-rules.js';
import { CounterChanges, writeCounters } from './counter-changes.js';
import {
  planReport,
  type ReportPlan,
  type ReportVerdict,
  type StoredHost,
  storedColumns,
  type VerifiedReport,
  waitForName,
} from './report-plan.js';
import { labelRows, outcomeRows, reportBundleRows, rowDifference } from './report-rows.js';
import type { SeenHosts } from './seen-hosts.js';
import { takenNames } from './taken-names.js';

export interface CommitContext {
  readonly db: Kysely<Tables>;
  readonly writer: RowWriter;
  readonly seen: SeenHosts;
  /** Multiplies the report interval that a host asks for; 1 or more. */
  readonly factor: number;
}

interface Planned {
  readonly taken: VerifiedReport;
  readonly before: StoredHost | undefined;
  readonly plan: ReportPlan;
}

interface ChangedHost extends Planned {
  readonly before: StoredHost;
  readonly plan: Extract<ReportPlan, { kind: 'changed' }>;
}

/**
 * @param batch at most one report of each host
 * @returns a verdict for each report, after the commit
 * @throws an error of the database; then no report of the batch is stored
 */
export async function commitReports(
  context: CommitContext,
  batch: readonly VerifiedReport[],
): Promise<ReportVerdict[]> {
  return whileBusy(() => commitOnce(context, batch));
}

async function commitOnce(
  context: CommitContext,
  batch: readonly VerifiedReport[],
): Promise<ReportVerdict[]> {
  const hosts = await readHosts(context, batch);
  const planned = batch.map((taken): Planned => {
    const before = hosts.get(taken.signed.keyId);
    const facts = { factor: context.factor, newNonce };
    return { taken, before, plan: planReport(before, taken, facts) };
  });
  const tokens = await readTokens(context.db, planned);
  const judged = planned.map((one) => refuseUncoveredName(one, tokens));
  const isWritten = judged.some(({ plan }) => plan.kind === 'asked' || plan.kind === 'changed');
  const written = isWritten
    ? await transactOnce(context.db, (trx) => write(trx, context.writer, judged, tokens))
    : judged;
  for (const { plan, taken } of written) {
    if (plan.kind === 'seen') context.seen.note(plan.seen);
    if (plan.kind === 'changed') context.seen.forget(taken.signed.keyId);
  }
  return written.map(({ plan }) => plan.verdict);
}

function newNonce(): string {
  return randomBytes(16).toString('base64url');
}

async function readHosts(
  { db, seen }: CommitContext,
  batch: readonly VerifiedReport[],
): Promise<ReadonlyMap<string, StoredHost>> {
  const keyIds = batch.map(({ signed }) => signed.keyId);
  const overlay = seen.overlay(keyIds);
  const rows = await db
    .selectFrom('hosts')
    .select(storedColumns)
    .where('key_id', 'in', paddedKeys(keyIds))
    .where('kind', '=', 'writ')
    .execute();
  return new Map(rows.map((row) => [row.key_id, overlay(row)]));
}

type Tokens = ReadonlyMap<string, Pick<TokenRow, 'id' | 'hosts' | 'labels'>>;

function changedHosts(planned: readonly Planned[]): ChangedHost[] {
  return planned
    .filter((one): one is ChangedHost => one.plan.kind === 'changed' && one.before !== undefined)
    .sort((a, b) => (a.before.key_id < b.before.key_id ? -1 : 1));
}

async function readTokens(db: Kysely<Tables>, planned: readonly Planned[]): Promise<Tokens> {
  const ids = new Set(changedHosts(planned).map(({ before }) => before.token_id));
  if (ids.size === 0) return new Map();
  const rows = await db
    .selectFrom('tokens')
    .select(['id', 'hosts', 'labels'])
    .where('id', 'in', [...ids])
    .execute();
  return new Map(rows.map((row) => [row.id, row]));
}

/** Refuses a report with a host name that the token does not cover. A host enrolled for `web-*` must not take another name later. */
function refuseUncoveredName(one: Planned, tokens: Tokens): Planned {
  const pattern = tokens.get(one.before?.token_id ?? '')?.hosts ?? '';
  if (one.plan.kind !== 'changed' || coversHost(pattern, one.plan.host.host)) return one;
  return { ...one, plan: { kind: 'answered', verdict: { kind: 'refused', code: 'FLEET_HOST_NOT_COVERED' } } };
}

/** Defers a host that changes its name to the name of another accepted host. Keys identify hosts, and the first host keeps a name. */
async function deferTakenNames(
  trx: Kysely<Tables>,
  planned: readonly Planned[],
): Promise<readonly Planned[]> {
  const renamed = changedHosts(planned).filter(
    ({ before, plan }) => plan.host.host !== before.host && plan.host.state === 'accepted',
  );
  const asked = renamed.map(({ plan: { host } }) => ({ keyId: host.key_id, host: host.host }));
  const taken = await takenNames(trx, asked);
  if (taken.size === 0) return planned;
  return planned.map((one) =>
    one.before !== undefined && one.plan.kind === 'changed' && taken.has(one.before.key_id)
      ? { ...one, plan: waitForName(one.before, one.plan.host) }
      : one,
  );
}

/** @returns the plans that were written, with hosts deferred that report a taken name */
async function write(
  trx: Kysely<Tables>,
  writer: RowWriter,
  judged: readonly Planned[],
  tokens: Tokens,
): Promise<readonly Planned[]> {
  const planned = await deferTakenNames(trx, judged);
  const changed = changedHosts(planned);
  const hosts = changed.map(({ plan }) => plan.host);
  const rule = { key: ['key_id'], where: { column: 'revision', is: '=', by: 1 } } as const;
  if ((await writer.write(trx, 'hosts', hosts, rule)) !== hosts.length) throw conflictError();
  for (const { plan, before } of planned) if (plan.kind === 'asked') await ask(trx, before, plan.nonce);
  if (changed.length === 0) return planned;
  const counters = await writeBundles(trx, writer, changed);
  await writeLabels(trx, writer, changed, tokens);
  const outcomes = changed.flatMap(({ before, plan, taken }) =>
    plan.host.state === 'waiting' ? [] : outcomeRows(before.key_id, taken.report, taken.receivedAtMs),
  );
  await writer.write(trx, 'outcomes', outcomes, { key: ['key_id', 'n'] });
  await forgetOutcomes(trx, changed);
  await writeIntervals(trx, writer, changed.map(reportedState));
  for (const { before, plan } of changed) {
    await noteInAudit(trx, before, plan.host);
    counters.hosts.move(before, plan.host);
  }
  // Write counters last, because other servers that change the same counters wait from here to the commit.
  await writeCounters(trx, writer, counters);
  return planned;
}

async function ask(trx: Kysely<Tables>, host: StoredHost | undefined, nonce: string): Promise<void> {
  if (host === undefined) return;
  const { key_id, revision } = host;
  const asked = await trx
    .updateTable('hosts')
    .set({ nonce, revision: revision + 1 })
    .where('key_id', '=', key_id)
    .where('revision', '=', revision)
    .executeTakeFirst();
  if (asked.numUpdatedRows !== 1n) throw conflictError();
}

/** A host that waits, as for a name that another one has, left the fleet until it is approved. */
function reportedState({ before, plan: { host }, taken }: ChangedHost): ReportedState {
  const { report, receivedAtMs } = taken;
  // Accept all outcome numbers in the answer to a challenge, because a restored host counts again from a lower number.
  const isAnswer = taken.signed.nonce !== undefined;
  return {
    ...{ keyId: before.key_id, receivedAtMs, skewMs: host.skew_ms },
    bundles: host.state === 'accepted' ? reportBundleRows(before.key_id, report) : [],
    outcomes: report.outcomes
      .filter(({ n }) => isAnswer || n > before.last_outcome)
      .sort((a, b) => a.n - b.n),
  };
}

/** @returns the changes of the counters */
async function writeBundles(
  trx: Kysely<Tables>,
  writer: RowWriter,
  changed: readonly ChangedHost[],
): Promise<CounterChanges> {
  const keys = paddedKeys(changed.map(({ before }) => before.key_id));
  const before = await trx.selectFrom('host_bundles').selectAll().where('key_id', 'in', keys).execute();
  const after = changed.flatMap(({ plan, taken }) =>
    plan.host.state === 'accepted' ? reportBundleRows(plan.host.key_id, taken.report) : [],
  );
  const difference = rowDifference(before, after, ({ key_id, bundle, channel }) =>
    keyOf(key_id, bundle, channel),
  );
  const counters = new CounterChanges();
  const slots = new Map(changed.map(({ before: { key_id, slot } }) => [key_id, slot]));
  const count = (rows: readonly HostBundleRow[], by: 1 | -1): void => {
    for (const row of rows) counters.add([row], slots.get(row.key_id) ?? 0, by);
  };
  // An unchanged row does not change a counter.
  count(difference.gone, -1);
  count(difference.replaced, -1);
  count(difference.changed, 1);
  for (const { key_id, bundle, channel } of difference.gone) {
    const rows = trx.deleteFrom('host_bundles').where('key_id', '=', key_id);
    await rows.where('bundle', '=', bundle).where('channel', '=', channel).execute();
  }
  await writer.write(trx, 'host_bundles', difference.changed, { key: ['key_id', 'bundle', 'channel'] });
  return counters;
}

async function writeLabels(
  trx: Kysely<Tables>,
  writer: RowWriter,
  changed: readonly ChangedHost[],
  tokens: Tokens,
): Promise<void> {
  const keys = paddedKeys(changed.map(({ before }) => before.key_id));
  const before = await trx.selectFrom('host_labels').selectAll().where('key_id', 'in', keys).execute();
  const after = changed.flatMap(({ before: { key_id, token_id }, taken }) => {
    const forced = JSON.parse(tokens.get(token_id)?.labels ?? '{}') as Record<string, string>;
    return labelRows(key_id, taken.report.labels, forced);
  });
  const { gone, changed: written } = rowDifference(before, after, ({ key_id, name }) => keyOf(key_id, name));
  for (const { key_id, name } of gone)
    await trx.deleteFrom('host_labels').where('key_id', '=', key_id).where('name', '=', name).execute();
  await writer.write(trx, 'host_labels', written, { key: ['key_id', 'name'] });
}

/** Joins columns by a newline, which no column contains. */
function keyOf(...columns: readonly string[]): string {
  return columns.join('\n');
}

/** Newest outcomes that are retained for each host, so that no host can fill the store. */
const keptOutcomes = 500;
/** Outcomes beyond the bound that may accumulate before they are deleted together. */
const spareOutcomes = 100;

/** Deletes old outcomes by the count of rows. The host chooses `n`, so that a bound on `n` would be without effect. */
async function forgetOutcomes(trx: Kysely<Tables>, changed: readonly ChangedHost[]): Promise<void> {
  const grown = changed.filter(({ taken }) => taken.report.outcomes.length > 0);
  if (grown.length === 0) return;
  const full = await trx
    .selectFrom('outcomes')
    .select('key_id')
    .where('key_id', 'in', paddedKeys(grown.map(({ before }) => before.key_id)))
    .groupBy('key_id')
    .having((eb) => eb.fn.countAll(), '>', keptOutcomes + spareOutcomes)
    .execute();
  for (const { key_id } of full)
    await keepNewest(trx, { table: 'outcomes', of: { key_id }, by: 'n', keep: keptOutcomes });
}

/** Renames that the audit retains for each host. Otherwise a host that changes its name in each report would fill it. */
const keptRenames = 20;

async function noteInAudit(trx: Kysely<Tables>, before: StoredHost, after: HostRow): Promise<void> {
  const entry = { atMs: after.last_seen_ms, who: 'server', subject: after.key_id, detail: after.host };
  if (after.host !== before.host)
    await noteRename(trx, { ...entry, what: 'host.rename', detail: `${before.host} -> ${after.host}` });
  if (after.state === 'waiting') await noteRename(trx, { ...entry, what: 'host.wait' });
  if (after.state === 'retired') await addAudit(trx, { ...entry, what: 'host.stopped' });
  if (after.cloned !== before.cloned) await addAudit(trx, { ...entry, what: 'host.cloned' });
}

async function noteRename(trx: Kysely<Tables>, entry: AuditEntry): Promise<void> {
  const { what, subject } = entry;
  await addAudit(trx, entry);
  await keepNewest(trx, { table: 'audit', of: { what, subject }, by: 'id', keep: keptRenames });
}

/** The error of a serialization failure, so that the caller reads and decides the batch again. */
function conflictError(): Error {
  return storeError('40001', 'a host was changed meanwhile');
}
