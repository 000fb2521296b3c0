import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultMetadataLimits } from '../../../src/core/limits.js';
import { isoTime } from '../../kit/repository/repository-simulator.js';
import { bench, dayMs, startMs, version } from '../../kit/trust/client-bench.js';

describe('refresh: requests and writes', () => {
  it('requests the next root, timestamp, snapshot and targets, in that order, and stores them', async () => {
    const { client, repository, store } = bench();
    const result = await client.refresh();
    assert.deepEqual(repository.takeRequests(), [
      'GET metadata/2.root.json',
      'GET metadata/timestamp.json',
      'GET metadata/1.snapshot.json',
      'GET metadata/1.targets.json',
    ]);
    assert.deepEqual(store.writes, ['root 1', 'timestamp', 'snapshot', 'targets']);
    assert.equal(result.requests, 4);
    assert.equal(result.changed, true);
    assert.equal(result.roles.timestamp.expiresAtMs, startMs + 7 * dayMs);
    assert.equal(result.signedAtMs, startMs);
    assert.deepEqual(Buffer.from(store.loadFiles().timestamp ?? []), repository.file('timestamp.json'));
    assert.deepEqual(Buffer.from(store.loadFiles().targets ?? []), repository.file('1.targets.json'));
  });

  it('makes two requests and no write when nothing is new', async () => {
    const { client, repository, store } = bench();
    await client.refresh();
    repository.takeRequests();
    store.writes.length = 0;
    const result = await client.refresh();
    assert.deepEqual(repository.takeRequests(), [
      'GET metadata/2.root.json',
      'GET metadata/timestamp.json if-none-match',
    ]);
    assert.equal(result.changed, false);
    assert.equal(result.requests, 2);
    assert.deepEqual(
      store.writes.filter((name) => name !== 'root 1'),
      [],
    );
  });

  it('makes two requests after a restart too, without an ETag if the caller wants that', async () => {
    const { client, repository, restart } = bench();
    await client.refresh();
    repository.takeRequests();
    const second = restart();
    assert.equal((await second.refresh()).changed, false);
    await second.refresh({ conditional: 'no' });
    assert.deepEqual(repository.takeRequests(), [
      'GET metadata/2.root.json',
      'GET metadata/timestamp.json',
      'GET metadata/2.root.json',
      'GET metadata/timestamp.json',
    ]);
  });

  it('accepts a re-signed timestamp without requesting files that it has', async () => {
    const { client, repository } = bench();
    await client.refresh();
    repository.takeRequests();
    repository.bumpTimestamp();
    assert.equal((await client.refresh()).changed, false);
    assert.equal(repository.takeRequests().length, 2);
    assert.equal(version(client, 'timestamp'), 2);
  });

  it('works without consistent snapshots', async () => {
    const { client, repository } = bench({ consistent: false });
    repository.publishRelease({ bundle: 'dns', channel: 'stable' }, Buffer.from('archive'));
    await client.refresh();
    assert.deepEqual(repository.takeRequests().slice(2), [
      'GET metadata/snapshot.json',
      'GET metadata/targets.json',
    ]);
    assert.equal((await client.target('dns', 'stable'))?.archivePath, 'targets/dns/stable.tar.br');
  });

  it('reports the trusted metadata without a request, and nothing before the first refresh', async () => {
    const { client, repository, restart } = bench();
    assert.equal(client.status(), undefined);
    assert.equal(await client.target('dns', 'stable'), undefined);
    await client.refresh();
    repository.takeRequests();
    assert.equal(version(restart(), 'targets'), 1);
    assert.deepEqual(repository.takeRequests(), []);
  });
});

describe('refresh: the chain of roots', () => {
  it('follows rotations of every role and stores each root', async () => {
    const { client, repository, store } = bench();
    await client.refresh();
    for (const role of ['root', 'timestamp', 'snapshot', 'targets'] as const) repository.rotate(role);
    repository.publish();
    const result = await client.refresh();
    assert.equal(result.roles.root.version, 5);
    assert.deepEqual(store.writes.filter((name) => name.startsWith('root')).slice(-4), [
      'root 2',
      'root 3',
      'root 4',
      'root 5',
    ]);
  });

  it('refuses a root that the outgoing keys did not sign, and one that the incoming keys did not', async () => {
    const outgoingMissing = bench();
    outgoingMissing.repository.rotate('root');
    outgoingMissing.repository.writeRoot(outgoingMissing.repository.keys.root);
    await assert.rejects(outgoingMissing.client.refresh(), { code: 'SIGNATURE_WRONG_KEY' });

    const incomingMissing = bench();
    const old = incomingMissing.repository.keys.root;
    incomingMissing.repository.rotate('root');
    incomingMissing.repository.writeRoot(old);
    await assert.rejects(incomingMissing.client.refresh(), { code: 'SIGNATURE_WRONG_KEY' });
    assert.equal(version(incomingMissing.client, 'root'), 1);
  });

  it('refuses a root with another version than the next one', async () => {
    const { client, repository } = bench();
    repository.serve('2.root.json', repository.bootstrapRoot);
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
    repository.bumpRoot();
    repository.bumpRoot();
    repository.serve('2.root.json', repository.file('3.root.json'));
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
  });

  it('accepts an expired intermediate root, and stops at an expired final one before it requests a timestamp', async () => {
    const { client, repository } = bench();
    const lives = repository.root.expires;
    repository.root.expires = isoTime(startMs - dayMs);
    repository.bumpRoot();
    repository.root.expires = lives;
    repository.bumpRoot();
    await client.refresh();
    assert.equal(version(client, 'root'), 3);

    repository.root.expires = isoTime(startMs);
    repository.bumpRoot();
    repository.takeRequests();
    const refused = { code: 'METADATA_EXPIRED', facts: { role: 'root' } };
    await assert.rejects(client.refresh(), (error: { code: string; facts: { role: string } }) => {
      assert.deepEqual({ code: error.code, facts: { role: error.facts.role } }, refused);
      return true;
    });
    assert.deepEqual(repository.takeRequests(), ['GET metadata/4.root.json', 'GET metadata/5.root.json']);
    assert.equal(version(client, 'root'), 4);
  });

  it('stops after as many roots as the bound allows, keeps them, and continues in the next refresh', async () => {
    const { client, repository } = bench({}, { ...defaultMetadataLimits, maxRootRotations: 3 });
    for (let count = 0; count < 5; count += 1) repository.bumpRoot();
    await assert.rejects(client.refresh(), { code: 'ROOT_CHAIN_TOO_LONG' });
    assert.equal(version(client, 'root'), 4);
    await client.refresh();
    assert.equal(version(client, 'root'), 6);
  });

  it('follows 256 roots in one refresh and not 257', async () => {
    const { client, repository } = bench();
    for (let count = 0; count < 257; count += 1) repository.bumpRoot();
    await assert.rejects(client.refresh(), { code: 'ROOT_CHAIN_TOO_LONG' });
    assert.equal(version(client, 'root'), 257);
  });
});

describe('target', () => {
  it('returns the signed entry of a release, and streams its archive', async () => {
    const { client, repository } = bench();
    const archive = Buffer.alloc(5000, 7);
    repository.publishRelease({ bundle: 'dns', channel: 'stable', serial: 12 }, archive);
    await client.refresh();
    const target = await client.target('dns', 'stable');
    assert.equal(target?.release.serial, 12);
    assert.equal(target?.length, 5000);
    assert.match(target?.archivePath ?? '', /^targets\/dns\/[0-9a-f]{64}\.stable\.tar\.br$/);
    assert.deepEqual(Buffer.from(target?.vouchedBy.bytes ?? []), repository.file('2.targets.json'));
    assert.equal(target?.vouchedBy.rootVersion, 1);
    const parts: Buffer[] = [];
    for await (const chunk of client.streamTarget(target!)) parts.push(chunk);
    assert.deepEqual(Buffer.concat(parts), archive);
    assert.equal(await client.target('dns', 'canary'), undefined);
    assert.equal(await client.target('constructor', 'stable'), undefined);
  });

  it('refuses an entry of another bundle, one without a known digest, and one that Writ did not write', async () => {
    const { client, repository } = bench();
    repository.publishRelease({ bundle: 'dns', channel: 'stable' }, Buffer.from('archive'));
    const { targets } = repository.targets;
    const good = targets['dns/stable.tar.br'];
    targets['web/stable.tar.br'] = good;
    targets['md5/stable.tar.br'] = {
      ...good,
      hashes: { md5: '00' },
      custom: { writ: { ...good.custom.writ, bundle: 'md5' } },
    };
    targets['bare/stable.tar.br'] = { length: 1, hashes: good.hashes };
    repository.publish();
    await client.refresh();
    for (const bundle of ['web', 'md5', 'bare']) {
      await assert.rejects(client.target(bundle, 'stable'), { code: 'TARGET_MALFORMED' });
    }
  });
});
