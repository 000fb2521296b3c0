// Version 10 of the schema: the intervals of releases on hosts.
import { expressionBuilder, type Kysely } from 'kysely';
import { type AnyTables, createTable, isPositive } from './create-table.js';

/** Which host ran or refused which release, from when to when. It begins with what hosts run and refuse now. */
export async function withIntervals(
  db: Kysely<AnyTables>,
  { nowMs }: { readonly nowMs: number },
): Promise<void> {
  const texts = ['key_id', 'bundle', 'channel', 'kind', 'manifest', 'state', 'code'];
  const key = ['key_id', 'bundle', 'channel', 'kind', 'serial', 'manifest', 'code', 'since_ms'];
  const numbers = ['serial', 'since_ms', 'until_ms', 'written_ms', 'merged'];
  await createTable(db, { name: 'intervals', key, texts, numbers });
  const columns = ['key_id', 'bundle', 'channel', 'kind', 'serial', 'manifest', 'state', 'code', 'since_ms'];
  const eb = expressionBuilder<AnyTables, 'host_bundles'>();
  const text = (value: string) => eb.cast<string>(eb.val(value), 'text');
  const added = [
    eb.lit(0).as('until_ms'),
    eb.cast(eb.val(nowMs), 'bigint').as('written_ms'),
    eb.lit(1).as('merged'),
  ];
  const of = db.selectFrom('host_bundles').select(['key_id', 'bundle', 'channel']);
  const active = of
    .select([text('active').as('kind'), 'serial', 'manifest', 'state', text('').as('code'), 'since_ms'])
    .select(added)
    .where('serial', '>', 0);
  const refused = of
    .select([text('refused').as('kind'), 'offered_serial', text('').as('manifest')])
    .select(['offered_state', 'offered_code', 'offered_at_ms'])
    .select(added)
    .where('offered_state', 'in', ['refused', 'rolled-back']);
  for (const rows of [active, refused])
    await db
      .insertInto('intervals')
      .columns([...columns, 'until_ms', 'written_ms', 'merged'])
      .expression(rows)
      .execute();
  await db.schema
    .createIndex('intervals_open')
    .on('intervals')
    .columns(['key_id'])
    .where(eb(eb.ref('until_ms'), '=', eb.lit(0)))
    .execute();
  const release = ['bundle', 'channel', 'serial', 'kind', 'since_ms', 'key_id'];
  await db.schema.createIndex('intervals_by_release').on('intervals').columns(release).execute();
  await db.schema
    .createIndex('intervals_by_age')
    .on('intervals')
    .columns(['written_ms'])
    .where(isPositive('until_ms'))
    .execute();
}
