// A fleet server follows real repositories that the publisher made: its conclusions, and its results when a repository is
// unreachable, expired, foreign, or followed by another process.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { parseHostFilter } from '../../../../src/core/fleet/host-filter.js';
import type { RepositoryView } from '../../../../src/core/fleet/signed-releases.js';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { createFleetQueries, type FleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import {
  followRepositories,
  openRepositories,
  openRepositoryReader,
  type RepositoryReader,
} from '../../../../src/fleet/repositories/follow-repositories.js';
import { createRefreshTrigger } from '../../../../src/fleet/repositories/refresh-trigger.js';
import { openRepositoryViews } from '../../../../src/fleet/repositories/repository-views.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { defaultValidityPeriods } from '../../../../src/publisher/repository/metadata-content.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { until } from '../../../kit/assert/until.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { type FleetBench, fleetBench, reportOf, send } from '../../../kit/fleet/fleet-bench.js';
import { delegateTo, makeTeam } from '../../../kit/repository/delegated-repository.js';
import {
  changeOptions,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

interface Scene extends AsyncDisposable {
  readonly dir: TempDir;
  readonly clock: FakeClock;
  readonly bench: FleetBench;
  readonly queries: FleetQueries;
  readonly ending: AbortController;
  reader(
    repository: Pick<SampleRepository, 'url' | 'rootPath'>,
    state?: string,
    mirrors?: readonly string[],
  ): RepositoryReader;
  views(): Promise<readonly RepositoryView[]>;
}

async function scene(): Promise<Scene> {
  const dir = tempDir(memory());
  const clock = fakeClock();
  const bench = await fleetBench(dir.join('store'), clock);
  const ending = new AbortController();
  const readers: RepositoryReader[] = [];
  return {
    ...{ dir, clock, bench, ending },
    queries: createFleetQueries(bench.store.db, bench.store.fleetId, clock),
    reader: ({ url, rootPath }, state = dir.join('state'), mirrors = []) => {
      const [opened] = openRepositories([{ url, mirrors, rootFile: rootPath }], clock);
      assert.ok(opened);
      const reader = openRepositoryReader(bench.store, opened, {
        state,
        clock,
        log: silentLog(),
        signal: ending.signal,
      });
      readers.push(reader);
      return reader;
    },
    views: () => openRepositoryViews(bench.store.db).read(clock.nowMs()),
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      for (const reader of readers) await reader.close();
      await bench[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

const hourMs = 3_600_000;
const shown = ({ entries }: RepositoryView) =>
  entries.map(({ bundle, channel, serial, withdrawn }) => [bundle, channel, serial, withdrawn]);

describe('a repository that a fleet server follows', () => {
  it('shows its current, replaced and withdrawn releases', longCase, async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    const reader = s.reader(repository);
    await repository.publish({ a: '1' }, { revision: 'first' });
    await repository.publish({ a: '2' }, { revision: 'second' });
    await reader.read();
    const [before] = await s.views();
    assert.ok(before);
    assert.deepEqual(shown(before), [['dns-edge', 'stable', 2, []]]);
    assert.deepEqual([before.failing, before.checkedAtMs], [undefined, s.clock.nowMs()]);
    assert.deepEqual(before.roles.map(({ role }) => role).sort(), [
      'root',
      'snapshot',
      'targets',
      'timestamp',
    ]);
    await s.clock.advance(1000);
    await withdrawRelease({ bundle: 'dns-edge', serials: [2], reason: 'bad' }, changeOptions(repository));
    await reader.read();
    const [after] = await s.views();
    assert.ok(after);
    assert.deepEqual(shown(after), [['dns-edge', 'stable', 1, [2]]]);
    assert.deepEqual(
      after.past.map(({ serial }) => serial),
      [2],
    );
    const { signed } = await s.queries.release({ bundle: 'dns-edge', channel: 'stable', serial: 2 });
    assert.deepEqual([signed?.[0]?.standing, signed?.[0]?.current, signed?.[0]?.from], ['withdrawn', 1, 2]);
    const revision = signed?.[0]?.changes?.find(({ member }) => member === 'revision');
    assert.deepEqual(revision, { member: 'revision', before: 'second', after: 'first' });
    const wait = await s.queries.wait({ bundle: 'dns-edge', channel: 'stable', serial: 2 });
    assert.deepEqual([wait.withdrawn, wait.signedSerial], [true, 1]);
  });

  it(
    'filters hosts by current, older and withdrawn release, and the filter is refused while no repository is followed',
    longCase,
    async () => {
      await using s = await scene();
      const find = async (where: string): Promise<readonly string[]> => {
        const { hosts } = await s.queries.hosts({ filter: parseHostFilter(where), limit: 10 }, 'view');
        return hosts.map(({ host }) => host);
      };
      await rejectsCode('USAGE', find('standing=behind'));
      const repository = sampleRepository(s.dir, { clock: s.clock });
      const reader = s.reader(repository);
      await repository.publish({ a: '1' });
      await reader.read();
      const [first] = await s.views();
      await repository.publish({ a: '2' });
      await reader.read();
      const [second] = await s.views();
      assert.ok(first !== undefined && second !== undefined);
      const root = { version: 1, sha256: second.roots.at(-1) ?? '' };
      const ingest = createIngest(s.bench.store, { clock: s.bench.clock, log: silentLog() });
      const { token } = await s.bench.token();
      const running = async (name: string, serial: number, manifest: string): Promise<void> => {
        const active = { serial, manifest, sinceMs: 1, state: 'confirmed' } as const;
        const bundles = [{ bundle: 'dns-edge', channel: 'stable', active }];
        const sent = send(ingest, await s.bench.enrol(token, name), reportOf(name, { root, bundles }));
        await s.clock.advance(50);
        assert.equal((await sent).kind, 'accepted');
      };
      await running('web-1', 1, first.entries[0]?.manifest ?? '');
      await running('web-2', 2, second.entries[0]?.manifest ?? '');
      await running('web-3', 2, 'f'.repeat(64));
      assert.deepEqual(await find('standing=current'), ['web-2']);
      assert.deepEqual(await find('standing=behind,bundle=dns-edge'), ['web-1']);
      assert.deepEqual(await find('standing=unknown'), ['web-3']);
      assert.deepEqual(await find('standing=behind,bundle=other'), []);
      await withdrawRelease({ bundle: 'dns-edge', serials: [2], reason: 'bad' }, changeOptions(repository));
      await reader.read();
      assert.deepEqual(await find('standing=withdrawn'), ['web-2', 'web-3']);
      assert.deepEqual(await find('standing=current'), ['web-1']);
      await s.clock.advance(10_000);
      await ingest.close();
    },
  );

  it('is read from a mirror, under one name, when its first server does not answer', longCase, async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    const away = `file://${s.dir.join('nowhere')}`;
    const reader = s.reader({ url: away, rootPath: repository.rootPath }, undefined, [repository.url]);
    await reader.read();
    const [view] = await s.views();
    assert.deepEqual(
      [view?.url, view?.failing, view && shown(view)],
      [`${away}/`, undefined, [['dns-edge', 'stable', 1, []]]],
    );
  });

  it('is parsed once for each refresh, however many queries follow', longCase, async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    const reader = s.reader(repository);
    await reader.read();
    const stored = openRepositoryViews(s.bench.store.db);
    const [one] = await stored.read(s.clock.nowMs());
    assert.ok(one);
    assert.equal((await stored.read(s.clock.nowMs()))[0], one);
    await s.clock.advance(1000);
    await repository.publish({ a: '2' });
    await reader.read();
    const [two] = await stored.read(s.clock.nowMs());
    assert.equal(two?.entries[0]?.serial, 2);
    assert.deepEqual(await stored.read(s.clock.nowMs() + 2 * 86_400_000), []);
  });

  it('is identified by the digest of its root, each by its own', longCase, async () => {
    await using s = await scene();
    const repositories = ['a', 'b'].map((name) => {
      fs.mkdirSync(s.dir.join(name));
      const dir: TempDir = { ...s.dir, join: (...parts) => s.dir.join(name, ...parts) };
      return sampleRepository(dir, { clock: s.clock, signers: 'own' });
    });
    for (const repository of repositories) {
      await repository.publish({ a: repository.url });
      await s.reader(repository).read();
    }
    const views = await s.views();
    assert.deepEqual(views.map(({ url }) => url).sort(), repositories.map(({ url }) => `${url}/`).sort());
    assert.equal(new Set(views.flatMap(({ roots }) => roots)).size, 2);
    assert.notEqual(views[0]?.entries[0]?.manifest, views[1]?.entries[0]?.manifest);
  });

  it('keeps its entries while it is unreachable, and shows since when', async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    const reader = s.reader(repository);
    await reader.read();
    const checkedAtMs = s.clock.nowMs();
    fs.renameSync(repository.directory, `${repository.directory}.away`);
    await s.clock.advance(60_000);
    const sinceMs = s.clock.nowMs();
    await reader.read();
    await s.clock.advance(6 * 60_000);
    await reader.read();
    const [away] = await s.views();
    assert.ok(away);
    assert.deepEqual(shown(away), [['dns-edge', 'stable', 1, []]]);
    assert.equal(away.checkedAtMs, checkedAtMs);
    assert.deepEqual(away.failing, { code: away.failing?.code, sinceMs });
    const { findings, repositories } = await s.queries.summary('view');
    assert.ok(
      findings.some(({ code, text }) => code === 'REPOSITORY_UNREAD' && /not been read for 6 min/.test(text)),
    );
    assert.equal(repositories?.[0]?.failing?.sinceMs, sinceMs);
    fs.renameSync(`${repository.directory}.away`, repository.directory);
    await reader.read();
    assert.equal((await s.views())[0]?.failing, undefined);
  });

  it('is never trusted when its root does not follow the configured one', longCase, async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    fs.mkdirSync(s.dir.join('other'));
    const other = sampleRepository(
      { ...s.dir, join: (...parts) => s.dir.join('other', ...parts) },
      { clock: s.clock, signers: 'own' },
    );
    await repository.publish({ a: '1' });
    await s.reader({ url: repository.url, rootPath: other.rootPath }).read();
    const [view] = await s.views();
    assert.deepEqual([view?.failing?.code, view?.checkedAtMs, view?.entries], ['SIGNATURE_WRONG_KEY', 0, []]);
    const { findings } = await s.queries.summary('view');
    const found = findings.find(({ code }) => code === 'REPOSITORY_UNREAD');
    assert.match(found?.text ?? '', /was never read \(SIGNATURE_WRONG_KEY\)$/);
    await s.reader({ url: repository.url, rootPath: s.dir.join('nothing') }, s.dir.join('fresh')).read();
    assert.equal((await s.views())[0]?.failing?.code, 'ROOT_MISSING');
  });

  it('keeps its entries and raises a finding when its metadata has expired', longCase, async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    const reader = s.reader(repository);
    await reader.read();
    const [{ roles } = { roles: [] }] = await s.views();
    const endMs = Math.min(...roles.map(({ expiresAtMs }) => expiresAtMs));
    await s.clock.advance(endMs - s.clock.nowMs() - hourMs);
    await reader.read();
    const soon = await s.queries.summary('view');
    assert.ok(
      soon.findings.some(({ code, text }) => code === 'ROLE_ENDS' && text === 'timestamp expires in 1 h'),
    );
    await s.clock.advance(2 * hourMs);
    await reader.read();
    const [view] = await s.views();
    assert.equal(view?.failing?.code, 'METADATA_EXPIRED');
    assert.equal(view?.entries.length, 1);
    const { level, findings } = await s.queries.summary('view');
    assert.equal(level, 'critical');
    assert.ok(
      findings.some(({ code, text }) => code === 'ROLE_EXPIRED' && /^timestamp has expired/.test(text)),
    );
  });

  it('shows the delegated roles, and the other channels stay current when one of them has expired', async () => {
    await using s = await scene();
    const validity = { root: 3 * defaultValidityPeriods.root };
    const repository = sampleRepository(s.dir, { clock: s.clock, validity, signers: 'own' });
    const team = makeTeam(s.dir, 'dns-team');
    await delegateTo(repository, team);
    await repository.publish({ file: 'one' }, { keys: team.keys });
    await repository.refresh();
    await repository.publish({ a: '1' }, { bundle: 'plain' });
    const reader = s.reader(repository);
    await reader.read();
    const [before] = await s.views();
    const role = before?.roles.find((one) => one.role === team.role);
    assert.ok(role);
    assert.deepEqual(
      before?.entries.map((one) => [one.bundle, one.role]),
      [
        ['dns-edge', team.role],
        ['plain', 'targets'],
      ],
    );
    s.clock.setWallTime(role.expiresAtMs + hourMs);
    await repository.publish({ a: '2' }, { bundle: 'plain' });
    await repository.refresh();
    await reader.read();
    const [after] = await s.views();
    assert.equal(after?.failing?.code, 'METADATA_EXPIRED');
    assert.deepEqual(
      after.entries.map(({ bundle, serial }) => [bundle, serial]),
      [
        ['plain', 2],
        ['dns-edge', 1],
      ],
    );
  });

  it('is refreshed until the server ends, and its rollback is refused', longCase, async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    fs.cpSync(repository.directory, s.dir.join('old'), { recursive: true });
    const opened = openRepositories([{ url: repository.url, rootFile: repository.rootPath }], s.clock);
    const options = {
      state: s.dir.join('state'),
      everyMs: 30_000,
      clock: s.clock,
      log: silentLog(),
      signal: s.ending.signal,
    };
    const following = followRepositories(s.bench.store, opened, options);
    const until = async (holds: (view: RepositoryView) => boolean): Promise<void> => {
      for (let round = 0; round < 600; round++) {
        const [view] = await s.views();
        if (view !== undefined && holds(view)) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (round % 5 === 4) await s.clock.advance(30_000);
      }
      assert.fail(JSON.stringify(await s.views()));
    };
    await until(({ entries }) => entries[0]?.serial === 1);
    await repository.publish({ a: '2' });
    await until(({ entries }) => entries[0]?.serial === 2);
    fs.rmSync(repository.directory, { recursive: true });
    fs.renameSync(s.dir.join('old'), repository.directory);
    await until(({ failing, entries }) => failing?.code === 'METADATA_ROLLBACK' && entries[0]?.serial === 2);
    s.ending.abort();
    await following;
  });

  it('is refreshed at once for a waiting client, and not within five seconds of the last refresh', async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    const opened = openRepositories([{ url: repository.url, rootFile: repository.rootPath }], s.clock);
    const refreshTrigger = createRefreshTrigger();
    const options = {
      ...{ state: s.dir.join('state'), everyMs: 30_000, refreshTrigger, clock: s.clock },
      ...{ log: silentLog(), signal: s.ending.signal },
    };
    const following = followRepositories(s.bench.store, opened, options);
    const sleeps = () => until(() => s.clock.sleeping() === 1);
    const read = async (serial: number): Promise<void> => {
      await until(async () => (await s.views())[0]?.entries[0]?.serial === serial);
      await sleeps();
    };
    await read(1);
    await repository.publish({ a: '2' });
    refreshTrigger.request();
    await s.clock.advance(4999);
    assert.equal(s.clock.sleeping(), 1);
    await s.clock.advance(1);
    await read(2);
    await repository.publish({ a: '3' });
    await s.clock.advance(5000);
    await sleeps();
    assert.equal((await s.views())[0]?.entries[0]?.serial, 2, 'no client waits');
    refreshTrigger.request();
    await read(3);
    s.ending.abort();
    await following;
  });

  it('is read by the process that has its directory, and forgotten after a day without a refresh', async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    const first = s.reader(repository);
    await first.read();
    await repository.publish({ a: '2' });
    await s.reader(repository).read();
    const [view] = await s.views();
    assert.deepEqual([view?.entries[0]?.serial, view?.failing], [1, undefined]);
    await s.clock.advance(24 * hourMs);
    assert.deepEqual(await s.views(), []);
    assert.equal((await s.queries.summary('view')).repositories, undefined);
  });

  it('is refused a directory that other users can write', async () => {
    await using s = await scene();
    const repository = sampleRepository(s.dir, { clock: s.clock });
    await repository.publish({ a: '1' });
    const reader = s.reader(repository);
    await reader.read();
    await reader.close();
    const state = s.dir.join('state');
    const own = `${state}/${fs.readdirSync(state)[0]}`;
    for (const path of [state, own, `${own}/trust`, `${own}/trust/roots`]) {
      fs.chmodSync(path, 0o777);
      const error = throwsCode('PATH_UNSAFE', () => s.reader(repository));
      assert.equal(error.facts['path'], path);
      fs.chmodSync(path, 0o700);
    }
  });

  it('is refused an invalid URL', () => {
    const wrong = [{ url: 'https://u:p@example.net/', rootFile: '/r' }];
    throwsCode('CONFIG_INVALID', () => openRepositories(wrong, fakeClock()));
  });
});
