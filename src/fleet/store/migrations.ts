// The versions of the store's schema, oldest first, in SQL that SQLite and PostgreSQL share. A released version is never changed; a
// change of the schema is a new version. Whole numbers have 64 bits. No text is null: '' stands for an absent text.
import { expressionBuilder, type Kysely } from 'kysely';
import { type AnyTables, createTable, isPositive, type NewTable } from './create-table.js';
import { withIntervals } from './interval-migration.js';

export interface Migration {
  readonly version: number;
  up(db: Kysely<AnyTables>, fleet: { readonly id: string; readonly nowMs: number }): Promise<void>;
}

export const migrations: readonly Migration[] = [
  { version: 1, up: first },
  { version: 2, up: alarms },
  { version: 3, up: withRepositories },
  { version: 4, up: withCountIndexes },
  { version: 5, up: withBlocked },
  { version: 6, up: withAuditIndex },
  { version: 7, up: withHostCounters },
  { version: 8, up: withAnswers },
  { version: 9, up: withBakes },
  { version: 10, up: withIntervals },
];

const tables: readonly NewTable[] = [
  {
    name: 'fleet',
    key: ['id'],
    texts: ['id'],
    numbers: ['created_at_ms', 'accepting_since_ms', 'accepting_until_ms'],
  },
  {
    name: 'hosts',
    key: ['key_id'],
    texts: [
      ...[
        'key_id',
        'public_key',
        'kind',
        'state',
        'host',
        'install_id',
        'boot_id',
        'token_id',
        'body_digest',
      ],
      ...['nonce', 'agent', 'health', 'version', 'root_digest', 'report', 'state_digest', 'past_ids'],
    ],
    numbers: [
      ...['ephemeral', 'enrolled_at_ms', 'counter', 'last_seen_ms', 'every_ms', 'skew_ms', 'root_version'],
      ...['cloned', 'slot', 'last_outcome', 'revision', 'id_returns'],
    ],
  },
  { name: 'host_labels', key: ['key_id', 'name'], texts: ['key_id', 'name', 'value'], numbers: [] },
  {
    name: 'host_bundles',
    key: ['key_id', 'bundle', 'channel'],
    texts: [
      ...['key_id', 'repository', 'bundle', 'channel', 'manifest', 'state'],
      ...['offered_state', 'offered_code', 'offered_line'],
    ],
    numbers: ['serial', 'since_ms', 'offered_serial', 'offered_at_ms'],
  },
  {
    name: 'outcomes',
    key: ['key_id', 'n'],
    texts: ['key_id', 'trigger', 'outcome', 'code', 'bundles'],
    numbers: ['n', 'at_ms', 'received_at_ms'],
  },
  {
    name: 'counters',
    key: ['repository', 'bundle', 'channel', 'manifest', 'serial', 'state', 'slot'],
    texts: ['repository', 'bundle', 'channel', 'manifest', 'state'],
    numbers: ['serial', 'slot', 'count'],
  },
  {
    name: 'tokens',
    key: ['id'],
    texts: ['id', 'digest', 'kind', 'role', 'note', 'hosts', 'labels'],
    numbers: ['uses_left', 'expires_at_ms', 'created_at_ms', 'revoked_at_ms'],
  },
  { name: 'sessions', key: ['digest'], texts: ['digest', 'token_id'], numbers: ['expires_at_ms'] },
  {
    name: 'audit',
    key: ['id'],
    texts: ['who', 'what', 'subject', 'detail'],
    numbers: ['id', 'at_ms'],
  },
  { name: 'leases', key: ['name'], texts: ['name', 'holder'], numbers: ['until_ms'] },
];

const indexes: readonly (readonly [table: string, columns: readonly string[], unique?: 'unique'])[] = [
  ['hosts', ['host', 'key_id']],
  ['hosts', ['state', 'agent', 'last_seen_ms']],
  ['hosts', ['state', 'health']],
  ['hosts', ['install_id']],
  ['host_labels', ['name', 'value']],
  ['host_bundles', ['bundle', 'channel', 'serial']],
  ['host_bundles', ['offered_state', 'offered_code']],
  ['outcomes', ['received_at_ms']],
  ['tokens', ['digest'], 'unique'],
  ['sessions', ['expires_at_ms']],
];

async function first(
  db: Kysely<AnyTables>,
  fleet: { readonly id: string; readonly nowMs: number },
): Promise<void> {
  for (const table of tables) await createTable(db, table);
  for (const [table, columns, unique] of indexes) {
    const index = db.schema
      .createIndex(`${table}_by_${columns.join('_')}`)
      .on(table)
      .columns([...columns]);
    await (unique === undefined ? index : index.unique()).execute();
  }
  const { id, nowMs } = fleet;
  const times = { created_at_ms: nowMs, accepting_since_ms: nowMs, accepting_until_ms: 0 };
  await db
    .insertInto('fleet')
    .values({ id, ...times })
    .execute();
  const lease = { holder: '', until_ms: 0 };
  await db
    .insertInto('leases')
    .values(['enrol', 'sweep'].map((name) => ({ name, ...lease })))
    .execute();
}

/** The alarms that the webhook received, and the lease of the server that sends them. */
async function alarms(db: Kysely<AnyTables>): Promise<void> {
  await createTable(db, {
    name: 'alarms',
    key: ['fingerprint'],
    texts: ['fingerprint', 'labels', 'summary', 'filter', 'told'],
    numbers: ['starts_at_ms', 'ends_at_ms'],
  });
  await db.insertInto('leases').values({ name: 'webhook', holder: '', until_ms: 0 }).execute();
}

/** The repositories that servers follow, each with the view that was read last. */
async function withRepositories(db: Kysely<AnyTables>): Promise<void> {
  const texts = ['id', 'url', 'view'];
  await createTable(db, { name: 'repositories', key: ['id'], texts, numbers: ['tried_at_ms'] });
}

/**
 * Covering indexes for the counts over the whole fleet: such a query then reads no row of a host, which holds a report of several kB.
 * A keepalive changes only the first of these indexes, and it changed that one before, too.
 */
async function withCountIndexes(db: Kysely<AnyTables>): Promise<void> {
  await db.schema.dropIndex('hosts_by_state_agent_last_seen_ms').execute();
  const covering = {
    hosts_by_silence: ['state', 'agent', 'last_seen_ms', 'every_ms', 'kind'],
    hosts_by_look: ['state', 'kind', 'agent', 'cloned', 'version', 'root_version', 'root_digest'],
  };
  for (const [name, columns] of Object.entries(covering))
    await db.schema.createIndex(name).on('hosts').columns(columns).execute();
}

/** A column for blocked hosts, so that a query counts them without reading their reports. */
async function withBlocked(db: Kysely<AnyTables>): Promise<void> {
  // A default, because a server of the version before may still write rows, and does not know this column.
  await db.schema
    .alterTable('hosts')
    .addColumn('blocked', 'bigint', (of) => of.notNull().defaultTo(0))
    .execute();
  const named = db
    .selectFrom('hosts')
    .select(['key_id', 'report'])
    .where('report', 'like', '%"ACTIVATION_BLOCKED"%')
    .orderBy('key_id')
    .limit(100);
  // A report may have 256 kB: 100 of them at a time bound the memory.
  let rows = await named.execute();
  for (; rows.length > 0; rows = await named.where('key_id', '>', String(rows.at(-1)?.['key_id'])).execute())
    await markBlocked(db, rows);
}

async function markBlocked(db: Kysely<AnyTables>, rows: readonly Record<string, unknown>[]): Promise<void> {
  for (const { key_id, report } of rows) {
    const { findings } = JSON.parse(String(report)) as { readonly findings?: readonly string[] };
    if (findings?.includes('ACTIVATION_BLOCKED') !== true) continue;
    await db.updateTable('hosts').set({ blocked: 1 }).where('key_id', '=', key_id).execute();
  }
}

/** An index for the audit rows of one subject. */
async function withAuditIndex(db: Kysely<AnyTables>): Promise<void> {
  const columns = ['subject', 'what', 'id'];
  await db.schema.createIndex('audit_by_subject').on('audit').columns(columns).execute();
}

/**
 * Counters of hosts by state, version and root, so that no query reads all hosts. Silent hosts are found by an index on the time at which
 * a host becomes overdue. Properties of few hosts or bundles have partial indexes, so that other rows do not pay for them.
 */
async function withHostCounters(db: Kysely<AnyTables>): Promise<void> {
  const texts = ['state', 'agent', 'version', 'root_digest'];
  const whole = ['cloned', 'blocked', 'root_version', 'slot'];
  const key = ['state', 'agent', 'cloned', 'blocked', 'version', 'root_version', 'root_digest', 'slot'];
  await createTable(db, { name: 'host_counters', key, texts, numbers: [...whole, 'count'] });
  const counted = db
    .selectFrom('hosts')
    .select(key)
    .select((of) => of.fn.countAll().as('count'))
    .where('kind', '=', 'writ')
    .where('state', '!=', 'retired')
    .groupBy(key);
  await db
    .insertInto('host_counters')
    .columns([...key, 'count'])
    .expression(counted)
    .execute();
  for (const name of ['hosts_by_look', 'hosts_by_silence', 'host_bundles_by_offered_state_offered_code'])
    await db.schema.dropIndex(name).execute();
  await indexHostsByTime(db);
  await db.schema
    .createIndex('host_bundles_by_offer')
    .on('host_bundles')
    .columns(['offered_state', 'offered_code', 'bundle', 'channel', 'offered_serial', 'offered_at_ms'])
    .where(isPositive('offered_serial'))
    .execute();
}

async function indexHostsByTime(db: Kysely<AnyTables>): Promise<void> {
  const eb = expressionBuilder<AnyTables, 'hosts'>();
  const granted = eb.parens(eb('every_ms', '*', eb.lit(2)));
  await db.schema
    .createIndex('hosts_by_due')
    .on('hosts')
    .columns(['state', 'agent', 'kind'])
    .expression(eb.parens(eb('last_seen_ms', '+', granted)))
    // Both operands of the expression, because PostgreSQL reads the row of an index without them.
    .columns(['last_seen_ms', 'every_ms'])
    .execute();
  const seen = ['state', 'agent', 'kind', 'last_seen_ms'];
  await db.schema.createIndex('hosts_by_seen').on('hosts').columns(seen).execute();
  await db.schema
    .createIndex('hosts_ephemeral')
    .on('hosts')
    .columns(['state', 'last_seen_ms'])
    .where(isPositive('ephemeral'))
    .execute();
}

/** A column for answered challenges: it distinguishes two machines with one boot id from one machine. */
async function withAnswers(db: Kysely<AnyTables>): Promise<void> {
  const table = db.schema.alterTable('hosts');
  await table.addColumn('answers', 'bigint', (of) => of.notNull().defaultTo(0)).execute();
}

/** The bake state of active releases; '' for reports from before this version, which do not have it. */
async function withBakes(db: Kysely<AnyTables>): Promise<void> {
  const table = db.schema.alterTable('host_bundles');
  await table.addColumn('bake', 'text', (of) => of.notNull().defaultTo('')).execute();
}

/** Creates the table of versions where it is missing. It belongs to no version, because it records which versions exist. */
export async function createVersions(db: Kysely<AnyTables>): Promise<void> {
  await db.schema
    .createTable('schema_versions')
    .ifNotExists()
    .addColumn('version', 'bigint', (of) => of.primaryKey())
    .addColumn('at_ms', 'bigint', (of) => of.notNull())
    .execute();
}
