// Across implementations, where many hands are at work: repositories of @tufjs/models that delegate go through our
// client, and ours go through tuf-js after root ceremonies, withdrawals, promotions and an export.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { promoteRelease } from '../../../../src/publisher/release/promote.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { liveReleasesOf } from '../../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { exportRepository } from '../../../../src/publisher/upkeep/export-repository.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { serveDirectory, serveFiles } from '../../../kit/net/serve-repository.js';
import { commit, newKey, proposal, signedBy } from '../../../kit/repository/ceremony.js';
import { delegateTo, makeTeam } from '../../../kit/repository/delegated-repository.js';
import type { KeyType } from '../../../kit/repository/key-pairs.js';
import {
  changeOptions,
  noReport,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';
import { targetBytes } from '../../../kit/trust/target-bytes.js';
import { trustHost } from '../../../kit/trust/trust-host.js';
import { tufJsClient } from '../../../kit/trust/tuf-js-client.js';
import {
  type ForeignDelegation,
  foreignKey,
  foreignRepository,
} from '../../../kit/trust/tuf-js-repository.js';

const nowMs = Date.UTC(2026, 10, 1);
const clock = fakeClock({ nowMs });
const content = (path: string): Buffer => Buffer.from(`what ${path} has`);
const targets = (...paths: string[]) =>
  Object.fromEntries(paths.map((path) => [path, { content: content(path) }]));
const prefixOf = (path: string): string => createHash('sha256').update(path).digest('hex').slice(0, 3);

/** Teams below teams, by patterns and by bins, open and terminating. */
function teams(type: KeyType): ForeignDelegation[] {
  const keys = [foreignKey(type)];
  const inner: ForeignDelegation = {
    name: 'inner/team?',
    keys: [foreignKey('ed25519')],
    pathHashPrefixes: [prefixOf('dns/inner'), 'fff'],
    targets: targets('dns/inner'),
  };
  return [
    { name: 'dns-team', keys, paths: ['dns/*'], targets: targets('dns/own'), delegations: [inner] },
    { name: 'last-word', keys, paths: ['shut/*'], terminating: true, targets: targets('shut/own') },
    {
      name: 'behind',
      keys,
      paths: ['shut/*', 'dns/*', 'w?b/x'],
      targets: targets('shut/late', 'dns/late', 'web/x'),
    },
  ];
}

const listed = ['top', 'dns/own', 'dns/inner', 'dns/late', 'shut/own', 'web/x'];
const unlisted = ['shut/late', 'dns/nobody', 'wxyb/x', 'dns/own/deeper'];

describe('a repository of @tufjs/models that delegates', longCase, () => {
  for (const type of ['ed25519', 'ecdsa', 'rsa'] as const) {
    for (const consistent of [true, false]) {
      it(`gives Writ and tuf-js the same results: ${type} keys, ${consistent ? 'consistent' : 'plain names'}`, async () => {
        using dir = tempDir();
        const keys = {
          root: [foreignKey(type)],
          timestamp: [foreignKey('ed25519')],
          snapshot: [foreignKey('ed25519')],
          targets: [foreignKey('ecdsa')],
        };
        const options = {
          nowMs,
          keys,
          consistent,
          pinned: consistent,
          targets: targets('top'),
          delegations: teams(type),
        };
        const { files, bootstrapRoot } = foreignRepository(options);
        await using server = await serveFiles(files);
        using host = trustHost(bootstrapRoot, nowMs);
        const client = host.boot(openRepositorySource(server.url, { clock, version: '0' }));
        await client.refresh();
        const theirs = tufJsClient({ directory: dir.join('theirs'), bootstrapRoot, url: server.url, nowMs });
        for (const path of listed) {
          assert.deepEqual(await targetBytes(client, path), content(path), path);
          assert.deepEqual(await theirs.download(path), content(path), path);
        }
        for (const path of unlisted) {
          assert.equal(await client.find(path), undefined, path);
          assert.equal(await theirs.download(path), undefined, path);
        }
        await client.close();
      });
    }
  }
});

/** New and old clients of tuf-js get each archive that the current targets list, byte for byte. */
class Readers {
  readonly #dir: TempDir;
  readonly #repository: SampleRepository;
  readonly #bootstrapRoot: Buffer;
  #visits = 0;

  constructor(dir: TempDir, repository: SampleRepository) {
    this.#dir = dir;
    this.#repository = repository;
    this.#bootstrapRoot = readFileSync(repository.rootPath);
  }

  /** @returns the paths that were read */
  async accept(url: string, rootVersion: number): Promise<string[]> {
    this.#visits += 1;
    const entries = liveReleasesOf(readRepositoryState(layoutOf(this.#repository.directory)));
    for (const name of ['old', `new-${this.#visits}`]) {
      const client = tufJsClient({
        directory: this.#dir.join(name),
        bootstrapRoot: this.#bootstrapRoot,
        url,
        nowMs,
      });
      await client.refresh();
      assert.equal(client.version('root'), rootVersion, name);
      for (const {
        path,
        file: { hashes },
      } of entries) {
        const [bundle = '', file = ''] = path.split('/');
        const archive = join(this.#repository.directory, 'targets', bundle, `${hashes['sha256']}.${file}`);
        assert.deepEqual(await client.download(path), readFileSync(archive), `${name}: ${path}`);
      }
    }
    return entries.map(({ path }) => path).sort();
  }
}

describe('a repository of the publisher of Writ, read by tuf-js', longCase, () => {
  it('stays valid through root ceremonies, withdrawals, promotions and an export', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock });
    const readers = new Readers(dir, repository);
    await using server = await serveDirectory(repository.directory, () => false);
    for (const text of ['one', 'two', 'three']) await repository.publish({ file: text });
    await repository.publish({ file: 'canary' }, { channel: 'canary' });
    assert.deepEqual(await readers.accept(server.url, 1), [
      'dns-edge/canary.tar.br',
      'dns-edge/stable.tar.br',
    ]);

    await withdrawRelease({ bundle: 'dns-edge', serials: [3], reason: 'broken' }, changeOptions(repository));
    await readers.accept(server.url, 1);
    await promoteRelease({ bundle: 'dns-edge', from: 'canary', to: 'stable' }, changeOptions(repository));
    await readers.accept(server.url, 1);

    const both = ['root-1.key', 'root-2.key'];
    const carol = { role: 'root', key: newKey(dir, 'carol') } as const;
    await commit(repository, await signedBy(repository, proposal(repository, { add: [carol] }), both));
    await readers.accept(server.url, 2);
    const replace = (['targets', 'snapshot', 'timestamp'] as const).map((role) => ({
      role,
      keys: [newKey(dir, `${role}-2`)],
    }));
    await commit(repository, await signedBy(repository, proposal(repository, { replace }), both));
    await readers.accept(server.url, 3);
    await repository.publish({ rule: 'x' }, { bundle: 'access' });
    await repository.refresh();
    const paths = ['access/stable.tar.br', 'dns-edge/canary.tar.br', 'dns-edge/stable.tar.br'];
    assert.deepEqual(await readers.accept(server.url, 3), paths);

    const directory = dir.join('stick');
    await exportRepository({
      repository: repository.directory,
      directory,
      clock,
      durableFs: createDurableFs(),
      lockWaitMs: 0,
      report: noReport,
    });
    await using stick = await serveDirectory(directory, () => false);
    assert.deepEqual(await readers.accept(stick.url, 3), paths);
  });

  it('has the targets that a team alone signs behind its delegation', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock });
    const readers = new Readers(dir, repository);
    await using server = await serveDirectory(repository.directory, () => false);
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team);
    assert.deepEqual(await readers.accept(server.url, 1), []);
    await repository.publish({ rule: '' }, { bundle: 'access' });
    for (const text of ['one', 'two']) {
      await repository.publish({ file: text }, { keys: team.keys });
      await repository.refresh();
      assert.deepEqual(await readers.accept(server.url, 1), [
        'access/stable.tar.br',
        'dns-edge/stable.tar.br',
      ]);
    }
  });
});
