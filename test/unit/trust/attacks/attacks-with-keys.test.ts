// The attacks that the specification names and that need a key, by their names: rollback, fast-forward, and what a
// stolen key can and cannot do. The policy stays as it was on the disk of the host, and rotation ends the attack.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../../kit/assert/long-case.js';
import { attackedHost } from '../../../kit/host/attacked-host.js';
import {
  encodeEnvelope,
  makeKey,
  type RepositorySimulator,
  signWith,
} from '../../../kit/repository/repository-simulator.js';
import { makeKeys, type SimulatedKey } from '../../../kit/repository/simulated-keys.js';

const trustFiles = ['root.json', 'timestamp.json', 'snapshot.json', 'targets.json'];

describe('fast-forward', () => {
  it('makes honest metadata a rollback (METADATA_ROLLBACK) until the stolen key is rotated', async () => {
    for (const role of ['timestamp', 'snapshot'] as const) {
      using host = await attackedHost();
      const { repository } = host;
      const honest = repository.signedOf(role).version;
      repository.signedOf(role).version = 9_007_199_254_740_991;
      if (role === 'snapshot') repository.timestamp.version += 1;
      repository.writeSnapshot();
      await host.resists({});
      repository.signedOf(role).version = honest;
      await host.release(6);
      await host.resists({ code: 'METADATA_ROLLBACK', keeps: trustFiles });
      repository.rotate(role);
      if (role === 'snapshot') repository.rotate('timestamp');
      await host.release(7);
      await host.follows(7);
    }
  });
});

describe('rollback', () => {
  it('to the metadata of yesterday, all of it well signed, is refused: METADATA_ROLLBACK', async () => {
    using host = await attackedHost();
    const yesterday = new Map(host.repository.files);
    await host.release(6);
    await host.follows(6);
    for (const [path, bytes] of yesterday) host.repository.files.set(path, bytes);
    await host.resists({ code: 'METADATA_ROLLBACK', keeps: trustFiles });
    // The memory is on the disk: a restart of the agent changes nothing.
    const reopened = host.test.reopen();
    await assert.rejects(reopened.client.refresh(), { code: 'METADATA_ROLLBACK' });
  });

  it('to an older release under new metadata is refused: SERIAL_ROLLBACK', async () => {
    using host = await attackedHost();
    await host.release(9);
    await host.follows(9);
    await host.release(8);
    const stands = host.trusted('root.json');
    const result = await host.test.pull();
    assert.deepEqual([result.outcome, result.bundles[0]?.problem?.code], ['rejected', 'SERIAL_ROLLBACK']);
    assert.equal(host.test.read('access/policy.yaml'), 'version: 9\n');
    assert.deepEqual(host.trusted('root.json'), stands);
  });
});

describe('key compromise: the online keys', () => {
  it('cannot sign policy: targets with only their signatures are refused (SIGNATURE_WRONG_KEY)', async () => {
    using host = await attackedHost();
    const { keys, signers } = host.repository;
    signers.set('targets', [...keys.timestamp, ...keys.snapshot]);
    await host.release(99);
    await host.resists({ code: 'SIGNATURE_WRONG_KEY', keeps: ['root.json', 'targets.json'] });
    assert.equal(host.status().bundles[0]?.server?.serial, 5);
  });

  it('cannot restore older targets: METADATA_ROLLBACK', async () => {
    using host = await attackedHost();
    const { repository } = host;
    await host.release(6);
    await host.follows(6);
    repository.snapshot.meta['targets.json'].version -= 1;
    repository.bumpSnapshot();
    await host.resists({ code: 'METADATA_ROLLBACK', keeps: ['root.json', 'snapshot.json', 'targets.json'] });
  });

  it('are refused after their rotation, and the host accepts updates: SIGNATURE_WRONG_KEY', async () => {
    using host = await attackedHost();
    const { repository } = host;
    const stolen = { timestamp: [...repository.keys.timestamp], snapshot: [...repository.keys.snapshot] };
    repository.rotate('timestamp');
    repository.rotate('snapshot');
    await host.release(6);
    await host.follows(6);
    for (const role of ['timestamp', 'snapshot'] as const) {
      repository.signers.set(role, stolen[role]);
      await host.release(7);
      await host.resists({
        code: 'SIGNATURE_WRONG_KEY',
        keeps: ['root.json', 'targets.json', `${role}.json`],
      });
      repository.signers.delete(role);
    }
    await host.release(8);
    await host.follows(8);
  });
});

describe('key compromise: offline keys below their threshold', () => {
  it('one root key of two cannot change the signing authority: SIGNATURE_THRESHOLD', async () => {
    using host = await attackedHost();
    const { repository } = host;
    const [stolen] = repository.keys.root;
    const evil = makeKeys(2);
    const root = structuredClone(repository.root);
    for (const { id, key } of evil) root.keys[id] = key;
    root.version += 1;
    root.roles.root = { keyids: evil.map(({ id }) => id), threshold: 1 };
    root.roles.targets = { keyids: evil.map(({ id }) => id), threshold: 1 };
    serveRoot(repository, root, [...evil, ...(stolen === undefined ? [] : [stolen])]);
    await host.resists({ code: 'SIGNATURE_THRESHOLD', keeps: trustFiles });
    repository.withhold('2.root.json');
    await host.release(6);
    await host.follows(6);
  });

  it('one targets key of two cannot sign policy, even with two signatures: SIGNATURE_THRESHOLD', async () => {
    using host = await attackedHost();
    const { repository } = host;
    repository.setKeys('targets', makeKeys(3), 2);
    repository.bumpRoot();
    await host.release(6);
    await host.follows(6);
    const [stolen] = repository.keys.targets;
    repository.signers.set(
      'targets',
      stolen === undefined ? [] : [stolen, makeKey(), ...repository.keys.snapshot],
    );
    await host.release(7);
    await host.resists({ code: 'SIGNATURE_THRESHOLD', keeps: ['root.json', 'targets.json'] });
    repository.signers.delete('targets');
    await host.release(8);
    await host.follows(8);
  });

  it(
    'the only targets key of a team signs for its own paths alone, and not at all once it is replaced',
    longCase,
    async () => {
      using host = await attackedHost();
      const { repository } = host;
      const team = repository.delegate('targets', { name: 'access-team', paths: ['access/*'] });
      delete repository.targets.targets['access/stable.tar.br'];
      const lent = { listedBy: 'access-team' };
      await publishBy(6);
      await host.follows(6);
      const stolen = [...team.keys];
      const next = makeKey();
      repository.targets.delegations.keys[next.id] = next.key;
      repository.targets.delegations.roles[0].keyids = [next.id];
      await publishBy(99);
      assert.deepEqual(repository.signersOf('access-team'), stolen);
      await host.resists({
        code: 'SIGNATURE_WRONG_KEY',
        freshness: 'refused',
        keeps: ['root.json', 'access-team.json'],
      });
      team.keys = [next];
      await publishBy(7);
      await host.follows(7);

      async function publishBy(serial: number): Promise<void> {
        await host.release(serial);
        const entry = repository.targets.targets['access/stable.tar.br'];
        delete repository.targets.targets['access/stable.tar.br'];
        repository.signedOf(lent.listedBy).targets['access/stable.tar.br'] = entry;
        repository.signedOf(lent.listedBy).version += 1;
        repository.publish();
      }
    },
  );
});

function serveRoot(repository: RepositorySimulator, root: unknown, signers: readonly SimulatedKey[]): void {
  repository.serve('2.root.json', encodeEnvelope(signWith(signers, root), root));
}
