// The SQL of a fleet server has only syntax that the embedded database and all engines with PostgreSQL's protocol support.
// The test records each statement while a fleet does everything once. No statement is written by hand.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseHostFilter } from '../../src/core/fleet/host-filter.js';
import { approveHost, retireHost } from '../../src/fleet/hosts/change-host.js';
import { createIngest } from '../../src/fleet/hosts/ingest.js';
import { noteAccepting, sweep } from '../../src/fleet/hosts/sweeps.js';
import { createFleetQueries } from '../../src/fleet/queries/fleet-queries.js';
import { readView, saveView } from '../../src/fleet/repositories/repository-views.js';
import { emptyView } from '../../src/fleet/repositories/view-rules.js';
import { takeLease } from '../../src/fleet/store/leases.js';
import { checkToken, listTokens, revokeToken } from '../../src/fleet/tokens/tokens.js';
import { silentLog } from '../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../kit/clock/fake-clock.js';
import { tempDir } from '../kit/disk/temp-dir.js';
import { bundleAt, fleetBench, reportOf, send } from '../kit/fleet/fleet-bench.js';
import { readSources, sourceFile } from '../kit/sources/source-files.js';

/** Syntax that one of the databases does not support, or that limits a fleet to one server. */
const forbidden =
  /\b(?:listen|notify|unlisten|returning|for (?:update|share)|lock table|skip locked|advisory\w*|pg_\w+|json\w*|ilike|similar to|distinct on|lateral|serial|autoincrement|now\(|current_timestamp|strftime|unixepoch|datetime|rowid|glob|pragma|replace into|insert or|nextval|generate_series|array)\b|::|~/i;

const handWritten = ({ path, imports, code }: ReturnType<typeof sourceFile>): boolean =>
  path.startsWith('fleet/') &&
  (imports.some(({ specifier, names }) => specifier === 'kysely' && /\bsql\b/.test(names)) ||
    (/\bCompiledQuery\s*\.\s*raw\b/.test(code) && path !== 'fleet/store/sqlite-dialect.ts'));

/** A write without `transactOnce`, which checks whether a newer version uses the store. */
const writesUnchecked = ({ path, code }: ReturnType<typeof sourceFile>): boolean =>
  path.startsWith('fleet/') &&
  !/^fleet\/store\/(?:migrate|migrations|interval-migration|transact|sqlite-dialect)\.ts$/.test(path) &&
  (/\.\s*transaction\(\)/.test(code) || /\bdb\s*\.\s*(?:insertInto|updateTable|deleteFrom)\b/.test(code));

async function doEverything(statements: Set<string>): Promise<void> {
  using directory = tempDir();
  const clock = fakeClock({ mode: 'skip' });
  const onSql = (sql: string): void => void statements.add(sql.toLowerCase());
  await using bench = await fleetBench(directory.join('store'), clock, { onSql });
  const { db } = bench.store;
  const change = { who: 'test', nowMs: clock.nowMs() };
  const { token, id } = await bench.token({ labels: { a: 'b' } });
  await checkToken(db, token, 'hosts', clock.nowMs());
  const host = await bench.enrol(token, 'web-1', { labels: { c: 'd' } });
  const second = await bench.enrol(token, 'web-1');
  await approveHost(db, second.keyId, change);
  const ingest = createIngest(bench.store, { clock, log: silentLog() });
  const outcome = { n: 1, trigger: 'poll', outcome: 'activated', atMs: 1, bundles: [] } as const;
  await send(ingest, host, reportOf('web-1', { labels: { x: 'y' }, outcomes: [outcome] }));
  await send(ingest, host, reportOf('web-1', { bundles: [bundleAt(2)] }));
  await send(ingest, host, reportOf('web-1', { bundles: [] }));
  await send(ingest, host, reportOf('web-1', { bundles: [], atMs: 9 }));
  await send(ingest, host, reportOf('web-1'), { counter: 1 });
  await ingest.close();
  await retireHost(db, second.keyId, change);
  await takeLease(db, 'sweep', { holder: 'a', nowMs: 1, forMs: 1 });
  await noteAccepting(db, 1);
  await sweep(db, 1);
  await listTokens(db);
  await revokeToken(db, id, change);
  await saveView(db, 'a', { ...emptyView('https://a/'), triedAtMs: clock.nowMs() });
  await readView(db, 'a');
  const queries = createFleetQueries(db, bench.store.fleetId, clock);
  await queries.summary('view');
  const question = { filter: parseHostFilter('standing=behind,bundle=dns,label.a=b'), limit: 1 };
  await queries.hosts(question, 'view');
}

describe('the SQL of a fleet server', () => {
  it("has only syntax of all engines with PostgreSQL's protocol and of the embedded one", async () => {
    const statements = new Set<string>();
    await doEverything(statements);
    assert.ok(statements.size > 40, `${statements.size} statements were recorded`);
    assert.deepEqual(
      [...statements].filter((sql) => forbidden.test(sql.replaceAll(/"[^"]*"/g, 'name'))),
      [],
    );
  });

  it('is made by kysely, and not by hand', () => {
    assert.deepEqual(
      readSources()
        .filter(handWritten)
        .map(({ path }) => path),
      [],
    );
    assert.equal(handWritten(sourceFile('fleet/a/b.ts', "import { sql } from 'kysely';")), true);
    assert.equal(handWritten(sourceFile('fleet/a/b.ts', "CompiledQuery.raw('listen x')")), true);
  });

  it('writes only in a transaction that first checks for a newer version', () => {
    assert.deepEqual(
      readSources()
        .filter(writesUnchecked)
        .map(({ path }) => path),
      [],
    );
    assert.equal(writesUnchecked(sourceFile('fleet/a/b.ts', 'await db.transaction().execute(work);')), true);
    assert.equal(writesUnchecked(sourceFile('fleet/a/b.ts', "await db\n  .deleteFrom('hosts')")), true);
  });

  it('is reported if it has syntax of one engine only', () => {
    for (const sql of [
      'LISTEN x',
      'select pg_advisory_lock(1)',
      'select 1 for update',
      'select a::text',
      'insert or ignore into t',
    ])
      assert.ok(forbidden.test(sql), sql);
  });
});
