import assert from 'node:assert/strict';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { recallFiles } from '../../../src/core/tuf/trusted-set.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { listTargets, recallRoles } from '../../../src/trust/find-target.js';
import { openTrustStore } from '../../../src/trust/store/trust-store.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { makeKeys } from '../../kit/repository/simulated-keys.js';
import { dayMs, isoTime } from '../../kit/repository/simulated-metadata.js';
import { type TrustBench, trustBench } from '../../kit/trust/trust-bench.js';

const content = Buffer.from('content');

/** A repository whose role lists `team/file`; trusted, and nothing asked yet. */
async function withRole(
  name: string,
  options: Parameters<typeof trustBench>[0] = {},
  more: object = {},
): Promise<TrustBench> {
  const bench = trustBench(options);
  bench.repository.delegate('targets', { name, paths: ['team/*'], ...more });
  bench.repository.addTarget('team/file', content, { listedBy: name });
  bench.repository.publish();
  assert.equal(await bench.refresh(), 'trusted');
  bench.asked();
  return bench;
}

/** Times and sizes of all that is in the store. */
function lookAt(trust: string): string[] {
  return readdirSync(trust, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const { mtimeNs, ino, size } = statSync(join(trust, name), { bigint: true });
      return `${name} ${ino} ${size} ${mtimeNs}`;
    });
}

describe('a delegated role', () => {
  for (const [name, file, request] of [
    ['dns-team', 'dns-team.json', '1.dns-team.json'],
    ['a/b', 'a%2Fb.json', '1.a%2Fb.json'],
    ['../x', '..%2Fx.json', '1...%2Fx.json'],
    ['..', '...json', '1....json'],
    ['?', '%3F.json', '1.%3F.json'],
    ['#', '%23.json', '1.%23.json'],
    ['1.root', '1.root.json', '1.1.root.json'],
    ['ä b%2F', '%C3%A4%20b%252F.json', '1.%C3%A4%20b%252F.json'],
    ['__proto__', '__proto__.json', '1.__proto__.json'],
  ] as const) {
    it(`named ${JSON.stringify(name)} is fetched, kept and found again under one encoded name`, async () => {
      using bench = await withRole(name);
      assert.equal((await bench.client.find('team/file'))?.vouchedBy.role, name);
      assert.deepEqual(bench.asked(), [request]);
      assert.ok(readdirSync(bench.trust).includes(file));
      assert.equal(bench.stored()[name], 1, 'as it was served');
      bench.restart();
      assert.equal((await bench.client.find('team/file'))?.length, content.length);
      assert.deepEqual(bench.asked(), [], 'what is kept is not asked for');
    });
  }

  it('is requested only when a path needs it, and once; an unchanged refresh writes nothing', async () => {
    using bench = await withRole('team');
    assert.equal(await bench.client.find('other/file'), undefined);
    assert.deepEqual(bench.asked(), []);
    await bench.client.find('team/file');
    assert.deepEqual(bench.asked(), ['1.team.json']);
    const before = lookAt(bench.trust);
    for (let time = 0; time < 3; time += 1) {
      await bench.refresh();
      await bench.client.find('team/file');
      assert.deepEqual(bench.asked(), ['2.root.json', 'timestamp.json?']);
    }
    bench.restart();
    await bench.refresh();
    await bench.client.find('team/file');
    assert.deepEqual(bench.asked(), ['2.root.json', 'timestamp.json']);
    assert.deepEqual(lookAt(bench.trust), before);
  });

  it('is fetched again when the snapshot lists another version, and when the stored file is damaged', async () => {
    using bench = await withRole('team');
    await bench.client.find('team/file');
    bench.repository.signedOf('team').version = 2;
    bench.repository.publish();
    await bench.refresh();
    bench.asked();
    await bench.client.find('team/file');
    assert.deepEqual([bench.asked(), bench.stored()['team']], [['2.team.json'], 2]);
    for (const damage of ['', '{"signed":', bench.storedBytes('targets')]) {
      writeFileSync(join(bench.trust, 'team.json'), damage);
      bench.restart();
      assert.ok(await bench.client.find('team/file'));
      assert.deepEqual(bench.asked(), ['2.team.json']);
    }
  });

  it('has a name without version if snapshots are not consistent', async () => {
    using bench = await withRole('team', { consistent: false });
    assert.equal((await bench.client.find('team/file'))?.archivePath, 'targets/team/file');
    assert.deepEqual(bench.asked(), ['team.json']);
  });

  it('is bounded by the length that the snapshot signed, and by that of targets', async () => {
    using bench = trustBench();
    bench.repository.pinned = true;
    bench.repository.delegate('targets', { name: 'team' });
    bench.repository.addTarget('team/file', content, { listedBy: 'team' });
    bench.repository.publish();
    await bench.refresh();
    const honest = bench.repository.file('1.team.json');
    bench.repository.serve('1.team.json', Buffer.concat([honest, Buffer.from(' ')]));
    await rejectsCode('DOWNLOAD_TOO_LARGE', bench.client.find('team/file'));
    bench.repository.serve('1.team.json', Buffer.from(honest).fill(' ', honest.length - 1));
    await rejectsCode('METADATA_MIX', bench.client.find('team/file'));
    assert.deepEqual(Object.keys(bench.stored()).sort(), ['root', 'snapshot', 'targets', 'timestamp']);
    bench.repository.serve('1.team.json', honest);
    assert.ok(await bench.client.find('team/file'));
  });

  it('needs the threshold of its own delegator, also if it was stored for another one', async () => {
    using bench = trustBench();
    const { repository } = bench;
    const other = makeKeys(1);
    for (const [name, paths] of [
      ['a', ['a/*']],
      ['b', ['b/*']],
    ] as const) {
      repository.delegate('targets', { name, paths: [...paths] });
    }
    repository.delegate('a', { name: 'shared', paths: ['*/*'] });
    repository.delegate('b', { name: 'shared', paths: ['*/*'], keys: other });
    repository.addTarget('a/file', content, { listedBy: 'shared' });
    repository.addTarget('b/file', content, { listedBy: 'shared' });
    repository.publish();
    await bench.refresh();
    assert.equal((await bench.client.find('a/file'))?.vouchedBy.chain.length, 3);
    await rejectsCode('SIGNATURE_WRONG_KEY', bench.client.find('b/file'));
    bench.restart();
    await rejectsCode('SIGNATURE_WRONG_KEY', bench.client.find('b/file'));
    assert.ok(await bench.client.find('a/file'));
  });

  it('is refused below the threshold and when expired, and not requested if the snapshot does not list it', async () => {
    const keys = makeKeys(2);
    using bench = await withRole('team', {}, { keys, threshold: 2 });
    bench.repository.signers.set('team', keys.slice(0, 1));
    bench.repository.writeTargets();
    await rejectsCode('SIGNATURE_THRESHOLD', bench.client.find('team/file'));
    bench.repository.signers.delete('team');
    bench.repository.signedOf('team').expires = isoTime(bench.clock.nowMs());
    bench.repository.writeTargets();
    const expired = await rejectsCode('METADATA_EXPIRED', bench.client.find('team/file'));
    assert.deepEqual([expired.facts['role'], expired.facts['expiredForMs']], ['team', 0]);

    using without = await withRole('lost');
    delete without.repository.snapshot.meta['lost.json'];
    without.repository.writeSnapshot();
    using fresh = trustBench({ source: () => without.repository.source() });
    fresh.restart({ trustedRoot: without.repository.bootstrapRoot });
    assert.equal(await fresh.refresh(), 'trusted');
    without.asked();
    await rejectsCode('METADATA_MIX', fresh.client.find('team/file'));
    assert.deepEqual(without.asked(), []);
  });

  it('is checked at the time of the last refresh, and at the current time by a process that has not refreshed', async () => {
    using bench = await withRole('team');
    bench.repository.signedOf('team').expires = isoTime(bench.clock.nowMs() + dayMs);
    bench.repository.signedOf('team').version = 2;
    bench.repository.publish();
    await bench.refresh();
    bench.clock.advance(2 * dayMs);
    assert.ok(await bench.client.find('team/file'));
    await bench.refresh();
    await rejectsCode('METADATA_EXPIRED', bench.client.find('team/file'));
    bench.restart();
    await rejectsCode('METADATA_EXPIRED', bench.client.find('team/file'));
  });

  it('is ignored in the store when no snapshot lists it any more', async () => {
    using bench = await withRole('team');
    await bench.client.find('team/file');
    bench.repository.targets.delegations = { keys: {}, roles: [] };
    bench.repository.publish();
    await bench.refresh();
    assert.equal(await bench.client.find('team/file'), undefined);
    assert.ok(readdirSync(bench.trust).includes('team.json'));
  });
});

describe('a search through slow roles', () => {
  it('has the deadline of a refresh for all roles together', async () => {
    const waits: number[] = [];
    using bench = trustBench({
      source: (source) => ({
        ...source,
        fetch: async (path, options) => {
          // A mirror that takes a minute for each role: the fake clock moves, and the deadline sees it.
          if (path.includes('.r')) await bench.clock.sleep(59_000, options.signal);
          if (path.includes('.r')) waits.push(bench.clock.monotonicMs());
          return source.fetch(path, options);
        },
      }),
    });
    for (let at = 1; at <= 10; at += 1) {
      bench.repository.delegate(at === 1 ? 'targets' : `r${at - 1}`, { name: `r${at}`, paths: ['team/*'] });
    }
    bench.repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    await rejectsCode('DOWNLOAD_TIMEOUT', bench.client.find('team/file'));
    assert.ok(waits.length < 8, `${waits.length} roles`);
  });
});

describe('a read of the trust store', () => {
  it('works for a repository with more roles than a listing visits', async () => {
    using bench = await withRole('team');
    await bench.client.find('team/file');
    for (let at = 0; at < 1100; at += 1) {
      bench.repository.delegate('targets', { name: `bin-${at}`, paths: [`bin-${at}/*`], keys: [] });
    }
    bench.repository.targets.version += 1;
    bench.repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    const directory = bench.trust;
    const bootstrapRoot = join(bench.trust, 'root.json');
    const store = openTrustStore({ directory, bootstrapRoot, fs: createDurableFs() });
    const recalled = recallRoles(recallFiles(store.loadRoot(), store.loadFiles()), store.loadDelegated);
    assert.deepEqual([...(recalled.delegated?.keys() ?? [])], ['team']);
  });
});

describe('list', () => {
  it('has each role, and the targets of it that a search finds in the role', async () => {
    using bench = await withRole('team', {}, { threshold: 1 });
    const { repository } = bench;
    repository.delegate('team', { name: 'deep', paths: ['team/*'] });
    repository.addTarget('team/deep', content, { listedBy: 'deep' });
    repository.addTarget('team/file', content, { listedBy: 'deep' });
    repository.addTarget('other/file', content, { listedBy: 'deep' });
    repository.addTarget('top', content);
    repository.signedOf('team').version = 2;
    repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    const list = await bench.client.list();
    assert.deepEqual(
      list?.files.map(({ path, vouchedBy }) => [path, vouchedBy.role]),
      [
        ['team/deep', 'deep'],
        ['team/file', 'team'],
        ['top', 'targets'],
      ],
    );
    assert.deepEqual(
      list?.delegated.map(({ role, delegator, version, threshold }) => [role, delegator, version, threshold]),
      [
        ['team', 'targets', 2, 1],
        ['deep', 'team', 1, 1],
      ],
    );
  });

  it('is empty before the first refresh, and throws for a role that cannot be trusted', async () => {
    using bench = trustBench();
    assert.equal(await bench.client.list(), undefined);
    bench.repository.delegate('targets', { name: 'team' });
    bench.repository.publish();
    await bench.refresh();
    bench.repository.withhold('1.team.json');
    await rejectsCode('METADATA_MISSING', bench.client.list());
  });

  it('throws if the searches for its paths take more than a minute', async () => {
    using bench = trustBench();
    for (const name of ['a', 'b', 'c']) bench.repository.addTarget(name, content);
    bench.repository.publish();
    await bench.refresh();
    const [directory, bootstrapRoot] = [bench.trust, join(bench.trust, 'root.json')];
    const store = openTrustStore({ directory, bootstrapRoot, fs: createDurableFs() });
    const set = recallFiles(store.loadRoot(), store.loadFiles());
    const searchesOf = (eachMs: number) => {
      let timeMs = 0;
      const monotonicMs = (): number => {
        timeMs += eachMs;
        return timeMs;
      };
      return listTargets(
        () => set,
        () => assert.fail(),
        { monotonicMs },
      );
    };
    assert.equal((await searchesOf(20_000)).files.length, 3);
    const { facts } = await rejectsCode('DELEGATION_LIMIT', searchesOf(30_000));
    assert.deepEqual(facts, { target: 'c', expected: 60_000, of: 'ms' });
  });
});
