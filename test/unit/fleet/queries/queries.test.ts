// The queries of a store with reports: counts, searches, and the facts of a wait.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { sql } from 'kysely';
import { maxNamedHosts } from '../../../../src/core/fleet/fleet-summary.js';
import { parseHostFilter } from '../../../../src/core/fleet/host-filter.js';
import { judgeSettledShare, judgeWait } from '../../../../src/core/fleet/wait-verdict.js';
import { retireHost } from '../../../../src/fleet/hosts/change-host.js';
import { createIngest, type Ingest } from '../../../../src/fleet/hosts/ingest.js';
import { noteAccepting, sweep } from '../../../../src/fleet/hosts/sweeps.js';
import { createFleetQueries, type FleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { readHostNames } from '../../../../src/fleet/queries/host-names.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { assertRecount } from '../../../kit/fleet/assert-recount.js';
import {
  type BenchHost,
  bundleAt,
  type FleetBench,
  fleetBench,
  reportOf,
  send,
} from '../../../kit/fleet/fleet-bench.js';

interface Fleet extends AsyncDisposable {
  readonly bench: FleetBench;
  readonly clock: FakeClock;
  readonly ingest: Ingest;
  readonly queries: FleetQueries;
  hosts(count: number, labels?: Record<string, string>): Promise<BenchHost[]>;
}

async function fleet(location: string): Promise<Fleet> {
  const clock = fakeClock({ mode: 'skip' });
  const bench = await fleetBench(location, clock);
  await noteAccepting(bench.store.db, clock.nowMs());
  const ingest = createIngest(bench.store, { clock, log: silentLog() });
  const { token } = await bench.token();
  return {
    bench,
    clock,
    ingest,
    queries: createFleetQueries(bench.store.db, bench.store.fleetId, clock),
    hosts: async (count, labels = {}) => {
      const names = Array.from({ length: count }, (_, at) => `web-${at + 1}`);
      const made: BenchHost[] = [];
      for (const name of names) made.push(await bench.enrol(token, name, { labels }));
      return made;
    },
    [Symbol.asyncDispose]: async () => {
      await ingest.close();
      await bench[Symbol.asyncDispose]();
    },
  };
}

const refusal = (line: string) =>
  ({ serial: 2, state: 'refused', code: 'CHECK_FAILED', atMs: 5, line, output: 'secret output' }) as const;
const question = { bundle: 'dns', channel: 'stable', serial: 2 };

describe('the queries of a fleet', () => {
  const directory = tempDir(memory());
  let stores = 0;
  const open = (): Promise<Fleet> => fleet(directory.join(`queries-${++stores}`));
  after(() => directory[Symbol.dispose]());

  it(
    'find overdue, newest, refusing and ephemeral hosts by indexes, and read no other host',
    longCase,
    async () => {
      const statements: string[] = [];
      const clock = fakeClock({ mode: 'skip' });
      const onSql = (text: string): void => void statements.push(text);
      await using bench = await fleetBench(directory.join(`queries-${++stores}`), clock, { onSql });
      const { db, fleetId } = bench.store;
      const ingest = createIngest(bench.store, { clock, log: silentLog() });
      const host = await bench.enrol((await bench.token()).token, 'web-1');
      await send(ingest, host, reportOf('web-1', { bundles: [bundleAt(1, { offered: refusal('') })] }));
      await ingest.close();
      statements.length = 0;
      await createFleetQueries(db, fleetId, clock).summary('view');
      await sweep(db, clock.nowMs());
      const hostQueries = statements.filter((text) => /from "(?:hosts|host_bundles)"/.test(text));
      const plans: string[] = [];
      for (const query of hostQueries) {
        const asked = sql.raw<{ detail: string }>(`explain query plan ${query.replaceAll('?', '1')}`);
        plans.push((await asked.execute(db)).rows.map(({ detail }) => detail).join(', '));
      }
      const all = 'state=? AND agent=? AND kind=?';
      const offer = 'offered_state=? AND offered_code=? AND bundle=? AND channel=? AND offered_serial=?';
      const bundles =
        'SEARCH host_bundles USING INDEX sqlite_autoindex_host_bundles_1 (key_id=?), USE TEMP B-TREE FOR GROUP BY';
      const offered = 'SEARCH host_bundles USING INDEX host_bundles_by_offer (offered_state=?)';
      assert.deepEqual(plans, [
        'SEARCH hosts USING INDEX hosts_by_state_health (state=? AND health=?)',
        `SEARCH hosts USING COVERING INDEX hosts_by_due (${all} AND <expr><?)`,
        `SEARCH hosts USING COVERING INDEX hosts_by_due (${all} AND <expr><?)`,
        `SEARCH hosts USING COVERING INDEX hosts_by_seen (${all})`,
        `SEARCH hosts USING INDEX hosts_by_seen (${all})`,
        `SEARCH hosts USING INDEX hosts_by_due (${all} AND <expr><?), ${bundles}`,
        `SEARCH hosts USING INDEX hosts_by_seen (${all}), ${bundles}`,
        `SEARCH host_bundles USING INDEX host_bundles_by_offer (${offer})`,
        `SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (key_id=?), LIST SUBQUERY 1, ${offered}, USE TEMP B-TREE FOR ORDER BY`,
        'SEARCH hosts USING INDEX hosts_ephemeral (state=?)',
      ]);
    },
  );

  it('count hosts by state, version and root from counters, without retired hosts', async () => {
    await using f = await open();
    const [one, two, three, four] = (await f.hosts(4)) as [BenchHost, BenchHost, BenchHost, BenchHost];
    const root = { version: 2, sha256: 'b'.repeat(64) };
    await send(f.ingest, one, reportOf('web-1', { version: '0.2.0', root }));
    await send(f.ingest, two, reportOf('web-2', { version: '0.2.0', agent: 'stop' }));
    await send(f.ingest, three, reportOf('web-3', { version: '0.3.0', root }));
    await send(f.ingest, one, reportOf('web-1', { version: '0.3.0', root }), { counter: 3 });
    await retireHost(f.bench.store.db, three.keyId, { who: 'test', nowMs: f.clock.nowMs() });
    assert.equal((await f.bench.enrol((await f.bench.token()).token, four.name)).state, 'waiting');
    const { hosts, versions, roots } = await f.queries.summary('view');
    assert.deepEqual([hosts.accepted, hosts.waiting, hosts.stopped, hosts.silent], [3, 1, 1, 0]);
    assert.deepEqual(
      versions.toSorted((a, b) => (a.version < b.version ? -1 : 1)),
      [
        { version: '0.2.0', hosts: 1 },
        { version: '0.3.0', hosts: 1 },
      ],
    );
    assert.deepEqual(
      roots.filter(({ version }) => version === 2),
      [{ version: 2, digest: root.sha256, hosts: 1 }],
    );
    await assertRecount(f.bench.store.db);
  });

  it(
    'count releases by state, with older releases and refusals, and show lines to permitted roles',
    longCase,
    async () => {
      await using f = await open();
      const [one, two, three] = (await f.hosts(3)) as [BenchHost, BenchHost, BenchHost];
      await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)] }));
      await send(
        f.ingest,
        two,
        reportOf('web-2', { bundles: [bundleAt(1, { offered: refusal('line 7: no') })] }),
      );
      await send(f.ingest, three, reportOf('web-3', { bundles: [bundleAt(1)] }));
      const summary = await f.queries.summary('view');
      assert.deepEqual(
        summary.releases.map(({ serial, confirmed, place }) => [serial, confirmed, place]),
        [
          [2, 1, 'newest'],
          [1, 2, 'tail'],
        ],
      );
      assert.deepEqual(summary.offers, [
        {
          bundle: 'dns',
          channel: 'stable',
          serial: 2,
          state: 'refused',
          code: 'CHECK_FAILED',
          hosts: 1,
          firstAtMs: 5,
        },
      ]);
      assert.equal(summary.level, 'critical');
      assert.deepEqual((await f.queries.summary('detail')).offers[0]?.lines, ['line 7: no']);
      const filter = parseHostFilter('state=rejected,bundle=dns,serial=2');
      const page = await f.queries.hosts({ filter, limit: 10 }, 'view');
      assert.deepEqual(
        page.hosts.map(({ host }) => host),
        ['web-2'],
      );
      assert.ok(!JSON.stringify([page, await f.queries.host('web-2', 'view')]).includes('line 7'));
      assert.ok(!JSON.stringify(await f.queries.host('web-2', 'view')).includes('secret output'));
      assert.ok(JSON.stringify(await f.queries.host('web-2', 'detail')).includes('secret output'));
    },
  );

  it('omit a line that a host did not send, signed releases without a repository, and the page after the last', async () => {
    await using f = await open();
    const [one] = (await f.hosts(1)) as [BenchHost];
    await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(1, { offered: refusal('') })] }));
    const page = await f.queries.hosts({ filter: parseHostFilter(''), limit: 1 }, 'detail');
    const [bundle] = page.hosts[0]?.bundles ?? [];
    assert.equal(bundle?.offered?.code, 'CHECK_FAILED');
    assert.deepEqual(['line' in bundle.offered, 'signed' in bundle, 'next' in page], [false, false, false]);
    assert.equal('lines' in ((await f.queries.summary('detail')).offers[0] ?? {}), false);
  });

  it('name the hosts of a finding up to its bound, and none beyond it', async () => {
    await using f = await open();
    await f.hosts(maxNamedHosts, { site: 'fra' });
    const filters = ['label.site=fra', 'host=web-1', 'host=web-9', ''];
    await f.bench.enrol((await f.bench.token()).token, 'db-1');
    const at = { nowMs: f.clock.nowMs(), fleet: { accepting_since_ms: 0, accepting_until_ms: 0 } };
    const names = await readHostNames(f.bench.store.db, filters, at);
    assert.deepEqual([...names.keys()], ['label.site=fra', 'host=web-1']);
    assert.equal(names.get('label.site=fra')?.length, maxNamedHosts);
  });

  it('show the bundles of many hosts before names that one host invents', longCase, async () => {
    await using f = await open();
    const [one, two, liar] = (await f.hosts(3)) as [BenchHost, BenchHost, BenchHost];
    const invented = Array.from({ length: 1000 }, (_, at) =>
      bundleAt(1, { bundle: `0-${at}`, offered: { serial: 2, state: 'refused', code: 'A', atMs: 5 } }),
    );
    await send(f.ingest, liar, reportOf('web-3', { bundles: invented }));
    await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)] }));
    await send(f.ingest, two, reportOf('web-2', { bundles: [bundleAt(1, { offered: refusal('') })] }));
    const { releases, offers } = await f.queries.summary('view');
    const dns = releases.filter(({ bundle }) => bundle === 'dns').map(({ serial, place }) => [serial, place]);
    assert.deepEqual(dns, [
      [2, 'newest'],
      [1, 'tail'],
    ]);
    assert.equal(offers.filter(({ bundle }) => bundle === 'dns').length, 1);
    assert.equal(releases.length + offers.length, 2000);
    assert.deepEqual(
      releases,
      releases.toSorted((a, b) => (a.bundle < b.bundle ? -1 : a.bundle > b.bundle ? 1 : b.serial - a.serial)),
    );
  });

  it('count no host as stopped or blocked while it waits to be accepted', async () => {
    await using f = await open();
    const [, two] = (await f.hosts(2)) as [BenchHost, BenchHost];
    const last = { agent: 'stop', findings: ['ACTIVATION_BLOCKED'] } as const;
    await send(f.ingest, two, reportOf('web-2', last));
    const before = (await f.queries.summary('view')).hosts;
    assert.deepEqual([before.waiting, before.stopped, before.blocked], [0, 1, 1]);
    // The name belongs to another host, so that an operator must approve it again.
    await send(f.ingest, two, reportOf('web-1', last));
    await f.clock.advance(2000);
    const { hosts } = await f.queries.summary('view');
    assert.deepEqual([hosts.waiting, hosts.stopped, hosts.blocked], [1, 0, 0]);
  });

  it('leave a retired host out of every count, and find it by a filter for it', longCase, async () => {
    await using f = await open();
    const [one] = (await f.hosts(1)) as [BenchHost];
    await send(f.ingest, one, reportOf('web-1'));
    await retireHost(f.bench.store.db, one.keyId, { who: 'test', nowMs: f.clock.nowMs() });
    const summary = await f.queries.summary('view');
    assert.deepEqual([summary.hosts.accepted, summary.releases.length], [0, 0]);
    const found = async (where: string) =>
      (await f.queries.hosts({ filter: parseHostFilter(where), limit: 10 }, 'view')).hosts.length;
    assert.deepEqual([await found(''), await found('state=retired')], [0, 1]);
    assert.equal((await f.queries.log({ limit: 1 })).entries[0]?.what, 'host.retire');
  });

  it('return every host once over pages, and refuse an invalid cursor', longCase, async () => {
    await using f = await open();
    await f.hosts(7, { site: 'fra' });
    const names: string[] = [];
    let after: string | undefined;
    do {
      const filter = parseHostFilter('label.site=fra');
      const page = await f.queries.hosts(
        { filter, limit: 3, ...(after === undefined ? {} : { after }) },
        'view',
      );
      names.push(...page.hosts.map(({ host }) => host));
      after = page.next;
    } while (after !== undefined);
    assert.deepEqual(names, ['web-1', 'web-2', 'web-3', 'web-4', 'web-5', 'web-6', 'web-7']);
    await rejectsCode(
      'USAGE',
      f.queries.hosts({ filter: parseHostFilter(''), limit: 3, after: 'x' }, 'view'),
    );
  });

  it('refuse a cursor that is JSON of another form', async () => {
    await using f = await open();
    for (const cursor of [{}, 1, null, ['a'], ['a\0', 'b'], ['a', 1]]) {
      const after = Buffer.from(JSON.stringify(cursor)).toString('base64url');
      await rejectsCode('USAGE', f.queries.hosts({ filter: parseHostFilter(''), limit: 3, after }, 'view'));
    }
  });

  it('find a host by its whole key, whatever names other hosts have', async () => {
    await using f = await open();
    const { token } = await f.bench.token();
    const victim = await f.bench.enrol(token, 'victim');
    // Rows in the form of 0.1.0. Later versions accept no name in the form of a key.
    for (const length of [8, 12, 63, 64]) await f.bench.enrol(token, victim.keyId.slice(0, length));
    const keyOf = async (name: string) => (await f.queries.host(name, 'view')).key;
    assert.equal(await keyOf(victim.keyId), victim.keyId);
    assert.equal(await keyOf(victim.keyId.slice(0, 20)), victim.keyId);
    for (const length of [8, 12, 63])
      await assert.rejects(f.queries.host(victim.keyId.slice(0, length), 'view'), {
        code: 'USAGE',
        hint: new RegExp(victim.keyId),
      });
    await rejectsCode('FLEET_HOST_UNKNOWN', f.queries.host('f'.repeat(64), 'view'));
  });

  it('find no OPA by the name of a host', async () => {
    await using f = await open();
    const [host] = await f.hosts(1);
    const row = await f.bench.store.db.selectFrom('hosts').selectAll().executeTakeFirstOrThrow();
    const opa = { ...row, key_id: 'opa/t/web-1', kind: 'opa' as const, report: '{"opa":[]}' };
    await f.bench.store.db.insertInto('hosts').values(opa).execute();
    assert.equal((await f.queries.host('web-1', 'view')).key, host?.keyId);
    assert.equal((await f.queries.host('opa/t/web-1', 'view')).key, 'opa/t/web-1');
  });

  it('bind the values of a filter, so that none is SQL', longCase, async () => {
    await using f = await open();
    await f.hosts(2);
    const filter = parseHostFilter(`host=' or 1=1 --`);
    assert.deepEqual((await f.queries.hosts({ filter, limit: 9 }, 'view')).hosts, []);
    await rejectsCode('FLEET_HOST_UNKNOWN', f.queries.host('%', 'view'));
  });

  it('count a host as silent after two granted intervals of an accepting server, and no stopped host', async () => {
    await using f = await open();
    const [one, two] = (await f.hosts(2)) as [BenchHost, BenchHost];
    await send(f.ingest, one, reportOf('web-1'));
    await send(f.ingest, two, reportOf('web-2', { agent: 'stop' }));
    const silent = async () =>
      (await f.queries.hosts({ filter: parseHostFilter('state=silent'), limit: 9 }, 'view')).hosts.map(
        ({ host, presence }) => [host, presence],
      );
    for (let passedMs = 0; passedMs < 600_000; passedMs += 20_000) {
      await f.clock.advance(20_000);
      await noteAccepting(f.bench.store.db, f.clock.nowMs());
    }
    assert.deepEqual(await silent(), []);
    await f.clock.advance(20_000);
    await noteAccepting(f.bench.store.db, f.clock.nowMs());
    assert.deepEqual(await silent(), [['web-1', 'silent']]);
    const summary = await f.queries.summary('view');
    assert.deepEqual([summary.hosts.silent, summary.hosts.stopped, summary.silence], [1, 1, 'judged']);
    // No host is silent while no server ran.
    await f.clock.advance(3_600_000);
    await noteAccepting(f.bench.store.db, f.clock.nowMs());
    assert.deepEqual(await silent(), []);
  });

  it('count for a wait the hosts that were enrolled at its start and did not stop', longCase, async () => {
    await using f = await open();
    const [one, two, three] = (await f.hosts(3)) as [BenchHost, BenchHost, BenchHost];
    await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)] }));
    await send(f.ingest, two, reportOf('web-2', { bundles: [bundleAt(1, { offered: refusal('no') })] }));
    await send(f.ingest, three, reportOf('web-3', { agent: 'stop' }));
    const first = await f.queries.wait(question);
    assert.deepEqual([first.of, first.confirmed, first.refused, first.notified], [2, 1, 1, 0]);
    assert.deepEqual(first.refusedHosts, [{ host: 'web-2', key: two.keyId, code: 'CHECK_FAILED' }]);
    const terms = { sharePpm: 1_000_000, withinMs: 1, accept: 'confirmed' } as const;
    assert.equal(judgeWait(first, terms, { frozen: first.of, elapsedMs: 0 }).outcome, 'out-of-reach');
    const later = (await f.bench.token()).token;
    await f.clock.advance(1000);
    const late = await f.bench.enrol(later, 'late-1');
    await send(f.ingest, late, reportOf('late-1', { bundles: [bundleAt(2)] }));
    assert.equal((await f.queries.wait({ ...question, sinceMs: first.atMs })).of, 2);
    assert.equal((await f.queries.wait({ ...question, bundle: 'other' })).of, 0);
  });

  it('count a host that shares its key with a clone as neither done nor settled', async () => {
    await using f = await open();
    const [one, two] = (await f.hosts(2)) as [BenchHost, BenchHost];
    const { active } = bundleAt(2);
    assert.ok(active !== undefined);
    const settled = [bundleAt(2, { active: { ...active, bake: 'settled' } })];
    await send(f.ingest, one, reportOf('web-1', { bundles: settled }));
    await send(f.ingest, two, reportOf('web-2', { bundles: settled }));
    await f.bench.store.db.updateTable('hosts').set({ cloned: 1 }).where('key_id', '=', two.keyId).execute();
    const facts = await f.queries.wait(question);
    assert.deepEqual([facts.of, facts.confirmed, facts.settled?.confirmed, facts.cloned], [2, 1, 1, 1]);
    const terms = { sharePpm: 1_000_000, withinMs: 1, accept: 'confirmed' } as const;
    assert.equal(judgeWait(facts, terms, { frozen: 2, elapsedMs: 0 }).outcome, 'out-of-reach');
    assert.equal(judgeSettledShare(facts, 1_000_000).isReached, false);
  });

  it('return the bundles of an OPA, with messages only for the role detail', async () => {
    await using f = await open();
    const [host] = await f.hosts(1);
    const row = await f.bench.store.db.selectFrom('hosts').selectAll().executeTakeFirstOrThrow();
    const opa = [
      { name: 'authz', revision: 'r1', code: '' },
      { name: 'main', code: 'bundle_error', message: 'line 3' },
    ];
    const stored = { ...row, key_id: 'opa/t/a', kind: 'opa' as const, report: JSON.stringify({ opa }) };
    await f.bench.store.db.insertInto('hosts').values(stored).execute();
    const [authz, main] = [
      { name: 'authz', revision: 'r1' },
      { name: 'main', code: 'bundle_error' },
    ];
    assert.deepEqual((await f.queries.host('opa/t/a', 'view')).opaBundles, [authz, main]);
    const detail = await f.queries.host('opa/t/a', 'detail');
    assert.deepEqual(detail.opaBundles, [authz, { ...main, message: 'line 3' }]);
    assert.equal(detail.report, undefined);
    assert.equal((await f.queries.host(host?.keyId ?? '', 'detail')).opaBundles, undefined);
  });

  it(
    'count hosts separately that run the release and did not confirm it, although they can',
    longCase,
    async () => {
      await using f = await open();
      const [one, two, three] = (await f.hosts(3)) as [BenchHost, BenchHost, BenchHost];
      const { active } = bundleAt(2);
      assert.ok(active !== undefined);
      const has = (state: 'notified' | 'unconfirmed') => [bundleAt(2, { active: { ...active, state } })];
      await send(f.ingest, one, reportOf('web-1', { bundles: has('unconfirmed') }));
      await send(f.ingest, two, reportOf('web-2', { bundles: has('notified') }));
      await send(f.ingest, three, reportOf('web-3', { bundles: [bundleAt(1)] }));
      const { of, confirmed, notified, unconfirmed } = await f.queries.wait(question);
      assert.deepEqual([of, confirmed, notified, unconfirmed], [3, 0, 1, 1]);
    },
  );

  it('find the counted hosts with a later release of its repository, and those with another release of its serial', async () => {
    await using f = await open();
    const [one, two, three, four] = (await f.hosts(4)) as [BenchHost, BenchHost, BenchHost, BenchHost];
    const elsewhere = { version: 1, sha256: 'b'.repeat(64) };
    const standing = async () => {
      const { confirmed, later, supersededBy, elsewhere: other } = await f.queries.wait(question);
      return [confirmed, later, supersededBy, other];
    };
    await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)] }));
    await send(f.ingest, two, reportOf('web-2', { root: elsewhere, bundles: [bundleAt(9)] }));
    assert.deepEqual(await standing(), [1, 0, undefined, 0], 'another repository counts its own serials');
    await send(f.ingest, three, reportOf('web-3', { bundles: [bundleAt(3)] }));
    const offered = { ...refusal('no'), serial: 4 };
    await send(f.ingest, four, reportOf('web-4', { bundles: [bundleAt(1, { offered })] }));
    assert.deepEqual(await standing(), [1, 2, 4, 0]);
    // A host that runs the release and is offered the next one can still confirm it.
    await send(f.ingest, four, reportOf('web-4', { bundles: [bundleAt(2, { offered })] }));
    assert.deepEqual(await standing(), [2, 1, 3, 0]);
    const other = { serial: 2, manifest: '0'.repeat(64), sinceMs: 1, state: 'confirmed' } as const;
    const lie = [bundleAt(2, { active: other, offered: refusal('no') })];
    await send(f.ingest, two, reportOf('web-2', { root: elsewhere, bundles: lie }));
    assert.deepEqual(await standing(), [2, 1, 3, 1], 'it counts for nothing but itself');
    assert.equal((await f.queries.wait(question)).refused, 0, 'and once');
  });

  it('ignore hosts in a wait that do not count for it', async () => {
    await using f = await open();
    const [one, stopped] = (await f.hosts(2)) as [BenchHost, BenchHost];
    await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)] }));
    await send(f.ingest, stopped, reportOf('web-2', { agent: 'stop', bundles: [bundleAt(8)] }));
    const { atMs: sinceMs } = await f.queries.wait(question);
    await f.clock.advance(1000);
    const late = await f.bench.enrol((await f.bench.token()).token, 'late-1');
    const other = { serial: 2, manifest: '0'.repeat(64), sinceMs: 1, state: 'confirmed' } as const;
    for (const bundle of [bundleAt(9), bundleAt(2, { active: other })]) {
      await send(f.ingest, late, reportOf('late-1', { bundles: [bundle] }));
      const { of, later, elsewhere, supersededBy } = await f.queries.wait({ ...question, sinceMs });
      assert.deepEqual([of, later, elsewhere, supersededBy], [1, 0, 0, undefined]);
    }
  });

  it('do not count a silent host as done by its last report, until it reports again', async () => {
    await using f = await open();
    const [one, two] = (await f.hosts(2)) as [BenchHost, BenchHost];
    await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)] }));
    for (let passedMs = 0; passedMs < 660_000; passedMs += 20_000) {
      await f.clock.advance(20_000);
      await noteAccepting(f.bench.store.db, f.clock.nowMs());
    }
    await send(f.ingest, two, reportOf('web-2', { bundles: [bundleAt(2)] }));
    const counted = async (): Promise<readonly number[]> => {
      const { of, confirmed, silent } = await f.queries.wait(question);
      return [of, confirmed, silent];
    };
    assert.deepEqual(await counted(), [2, 1, 1]);
    await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)], health: 'warning' }));
    assert.deepEqual(await counted(), [2, 2, 0]);
  });

  it(
    'leave out hosts that are silent for longer than the given time, and return their number',
    longCase,
    async () => {
      await using f = await open();
      const [one, two] = (await f.hosts(2)) as [BenchHost, BenchHost];
      await send(f.ingest, one, reportOf('web-1', { bundles: [bundleAt(2)] }));
      await f.clock.advance(3 * 86_400_000);
      await send(f.ingest, two, reportOf('web-2', { bundles: [bundleAt(2)] }));
      const { of, excepted } = await f.queries.wait({ ...question, exceptSilentMs: 2 * 86_400_000 });
      assert.deepEqual([of, excepted], [1, 1]);
    },
  );

  it('return the confirmations of a release as a curve', longCase, async () => {
    await using f = await open();
    const hosts = await f.hosts(4);
    for (const [at, host] of hosts.entries()) {
      const active = {
        serial: 2,
        manifest: 'c'.repeat(64),
        sinceMs: 1000 * (at + 1),
        state: 'confirmed',
      } as const;
      await send(f.ingest, host, reportOf(host.name, { bundles: [bundleAt(2, { active })] }));
    }
    const { curve, releases } = await f.queries.release(question);
    assert.equal(releases[0]?.confirmed, 4);
    assert.deepEqual([curve[0]?.confirmed, curve.at(-1)], [1, { atMs: 4000, confirmed: 4 }]);
  });
});
