import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultMetadataLimits, type MetadataLimits } from '../../src/core/limits.js';
import { keyId } from '../../src/core/signature-schemes.js';
import { openRepositoryClient, type RepositoryClient } from '../../src/trust/repository-client.js';
import { memoryTrustStore, type TrustStore } from '../../src/trust/trust-store.js';
import { rejectsCode } from '../support/assert-code.js';
import { fakeClock } from '../support/fake-clock.js';
import {
  encodeEnvelope,
  isoTime,
  makeKey,
  RepositorySimulator,
  type SimulatorOptions,
  signWith,
} from '../support/repository-simulator.js';

const startMs = Date.UTC(2026, 10, 1);
const dayMs = 86_400_000;

interface Bench {
  readonly clock: ReturnType<typeof fakeClock>;
  readonly repository: RepositorySimulator;
  readonly store: TrustStore & { readonly writes: string[] };
  readonly client: RepositoryClient;
  /** A second process on the same store. */
  restart(): RepositoryClient;
}

function bench(options: Partial<SimulatorOptions> = {}, limits?: MetadataLimits): Bench {
  const clock = fakeClock({ nowMs: startMs });
  const repository = new RepositorySimulator({ nowMs: startMs, ...options });
  const store = recordWrites(memoryTrustStore(repository.bootstrapRoot));
  const restart = (): RepositoryClient =>
    openRepositoryClient({ source: repository.source(), store, clock, ...(limits ? { limits } : {}) });
  return { clock, repository, store, client: restart(), restart };
}

function recordWrites(store: TrustStore): TrustStore & { readonly writes: string[] } {
  const writes: string[] = [];
  return {
    ...store,
    writes,
    saveRoot: (version, bytes) => {
      writes.push(`root ${version}`);
      store.saveRoot(version, bytes);
    },
    saveFile: (role, bytes) => {
      writes.push(role);
      store.saveFile(role, bytes);
    },
  };
}

function version(
  client: RepositoryClient,
  role: 'root' | 'timestamp' | 'snapshot' | 'targets',
): number | undefined {
  return client.status()?.roles[role]?.version;
}

describe('refresh: requests and writes', () => {
  it('asks for the next root, timestamp, snapshot and targets, in that order, and stores what came', async () => {
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

  it('costs two requests and no write when nothing is new', async () => {
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

  it('costs two requests after a restart too, and asks unconditionally when told to', async () => {
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

  it('takes a re-signed timestamp without asking for what it already has', async () => {
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

  it('reports what it trusts without a request, and nothing before the first refresh', async () => {
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

  it('refuses a root whose version is not the next one', async () => {
    const { client, repository } = bench();
    repository.serve('2.root.json', repository.bootstrapRoot);
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
    repository.bumpRoot();
    repository.bumpRoot();
    repository.serve('2.root.json', repository.file('3.root.json'));
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
  });

  it('passes an expired root in between, and stops at an expired final one before asking for a timestamp', async () => {
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

  it('stops after as many roots as the bound allows, keeps them, and goes on in the next refresh', async () => {
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

describe('refresh: rollback', () => {
  it('refuses an older timestamp, and keeps the newer one', async () => {
    const { client, repository } = bench();
    const old = repository.file('timestamp.json');
    repository.bumpTimestamp();
    await client.refresh();
    repository.serve('timestamp.json', old);
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
    assert.equal(version(client, 'timestamp'), 2);
  });

  it('keeps the timestamp it has when another comes with the same version', async () => {
    const { client, repository, store } = bench();
    await client.refresh();
    const kept = repository.file('timestamp.json');
    repository.timestamp.expires = isoTime(startMs + 8 * dayMs);
    repository.writeTimestamp();
    assert.equal((await client.refresh()).changed, false);
    assert.deepEqual(Buffer.from(store.loadFiles().timestamp ?? []), kept);
  });

  it('refuses a newer timestamp that names an older snapshot', async () => {
    const { client, repository } = bench();
    repository.bumpSnapshot();
    await client.refresh();
    repository.timestamp.meta['snapshot.json'].version = 1;
    repository.bumpTimestamp();
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
    assert.equal(version(client, 'timestamp'), 2);
  });

  for (const pinned of [false, true]) {
    it(`refuses a newer snapshot that names older targets, ${pinned ? 'with' : 'without'} digests`, async () => {
      const { client, repository } = bench();
      repository.pinned = pinned;
      repository.publish();
      await client.refresh();
      repository.snapshot.meta['targets.json'] = repository.describe(1, repository.file('1.targets.json'));
      repository.bumpSnapshot();
      await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
      assert.equal(version(client, 'snapshot'), 2);
    });
  }

  it('refuses a snapshot from which a role has vanished', async () => {
    const { client, repository } = bench();
    repository.snapshot.meta['team.json'] = { version: 4 };
    repository.publish();
    await client.refresh();
    repository.snapshot.meta = { 'targets.json': repository.snapshot.meta['targets.json'] };
    repository.bumpSnapshot();
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
  });

  it('holds after a restart as well', async () => {
    const { client, repository, restart } = bench();
    const old = repository.file('timestamp.json');
    repository.publish();
    await client.refresh();
    repository.serve('timestamp.json', old);
    await assert.rejects(restart().refresh(), { code: 'METADATA_ROLLBACK' });
  });
});

describe('refresh: recovery from fast-forward', () => {
  it('forgets a timestamp of a stolen key, and its clock floor, when that key is rotated', async () => {
    const { client, repository, clock } = bench();
    repository.timestamp.version = 1_000_000;
    repository.timestamp.writ = { signedAt: isoTime(startMs + 5 * dayMs) };
    repository.writeTimestamp();
    await client.refresh();

    repository.rotate('timestamp');
    repository.timestamp.version = 2;
    repository.timestamp.writ = { signedAt: isoTime(startMs) };
    repository.writeTimestamp();
    const result = await client.refresh();
    assert.equal(result.roles.timestamp.version, 2);
    assert.deepEqual(result.warnings, []);
    assert.equal(clock.nowMs(), startMs);
  });

  it('forgets a snapshot of a stolen key, in the timestamp too, when only the snapshot key is rotated', async () => {
    const { client, repository } = bench();
    repository.snapshot.version = 1_000_000;
    repository.writeSnapshot();
    await client.refresh();

    repository.rotate('snapshot');
    repository.snapshot.version = 2;
    repository.timestamp.version = 2;
    repository.writeSnapshot();
    assert.equal((await client.refresh()).roles.snapshot.version, 2);
  });

  it('recovers even if it was stopped between the new root and the new timestamp', async () => {
    const { client, repository, restart } = bench();
    repository.snapshot.version = 1_000_000;
    repository.writeSnapshot();
    await client.refresh();
    repository.rotate('snapshot');
    repository.files.delete('metadata/timestamp.json');
    await assert.rejects(client.refresh(), { code: 'METADATA_MISSING' });

    repository.snapshot.version = 2;
    repository.timestamp.version = 2;
    repository.writeSnapshot();
    assert.equal((await restart().refresh()).roles.snapshot.version, 2);
  });

  it('lets targets go back after a fast-forward, when snapshot keys are rotated', async () => {
    const { client, repository } = bench();
    repository.targets.version = 1_000_000;
    repository.writeTargets();
    await client.refresh();
    repository.rotate('snapshot');
    repository.targets.version = 2;
    repository.snapshot.version = 2;
    repository.timestamp.version = 2;
    repository.writeTargets();
    assert.equal((await client.refresh()).roles.targets.version, 2);
  });

  it('asks for the whole timestamp after a rotation, where "not modified" would say nothing', async () => {
    const { client, repository } = bench();
    await client.refresh();
    repository.rotate('timestamp');
    repository.takeRequests();
    // The server still has the timestamp of the old key: the ETag would match.
    await assert.rejects(client.refresh(), { code: 'SIGNATURE_WRONG_KEY' });
    assert.ok(repository.takeRequests().includes('GET metadata/timestamp.json'));
  });
});

describe('refresh: expiry and the clock', () => {
  for (const role of ['timestamp', 'snapshot', 'targets'] as const) {
    it(`refuses an expired ${role}, at the very second of its end, and does not store it`, async () => {
      const { client, repository, store } = bench();
      repository[role].expires = isoTime(startMs);
      if (role === 'timestamp') repository.timestamp.writ = { signedAt: isoTime(startMs - dayMs) };
      repository.publish();
      await assert.rejects(client.refresh(), (error: { code: string; facts: Record<string, unknown> }) => {
        assert.equal(error.code, 'METADATA_EXPIRED');
        assert.equal(error.facts['role'], role);
        assert.equal(error.facts['expires'], isoTime(startMs));
        assert.equal(error.facts['expiredForMs'], 0);
        return true;
      });
      assert.equal(store.writes.includes(role), false);
    });
  }

  it('judges files that it kept again: a server that only answers "not modified" cannot freeze a host', async () => {
    const { client, clock } = bench();
    await client.refresh();
    clock.setWallTime(startMs + 7 * dayMs);
    await assert.rejects(client.refresh(), { code: 'METADATA_EXPIRED' });
  });

  it('judges a kept snapshot again', async () => {
    const { client, clock, repository } = bench();
    await client.refresh();
    clock.setWallTime(startMs + 31 * dayMs);
    repository.timestamp.expires = isoTime(startMs + 40 * dayMs);
    repository.bumpTimestamp();
    await assert.rejects(client.refresh(), (error: { code: string; facts: Record<string, unknown> }) => {
      assert.equal(error.code, 'METADATA_EXPIRED');
      assert.equal(error.facts['role'], 'snapshot');
      return true;
    });
  });

  it('judges kept targets again under a fresh timestamp and snapshot', async () => {
    const { client, clock, repository } = bench();
    repository.targets.expires = isoTime(startMs + dayMs);
    repository.publish();
    await client.refresh();
    clock.setWallTime(startMs + 2 * dayMs);
    repository.bumpTimestamp();
    const error = await rejectsCode('METADATA_EXPIRED', client.refresh());
    assert.equal(error.facts['role'], 'targets');
  });

  it('comes back to fresh metadata although what it has stored expired long ago', async () => {
    const { client, clock, repository, restart } = bench();
    await client.refresh();
    clock.setWallTime(startMs + 100 * dayMs);
    repository.moveTime(100 * dayMs);
    repository.publish();
    assert.equal((await restart().refresh()).roles.timestamp.version, 2);
  });

  it('reports a clock that is behind the last signature, and uses that signature as the time', async () => {
    const { client, clock, repository, restart } = bench();
    repository.moveTime(10 * dayMs);
    repository.publish();
    clock.setWallTime(startMs + 10 * dayMs);
    await client.refresh();

    clock.setWallTime(startMs - 365 * dayMs);
    const behind = await restart().refresh();
    assert.deepEqual(
      behind.warnings.map(({ code, facts }) => [code, facts.behindMs]),
      [['CLOCK_BEHIND', 375 * dayMs]],
    );
    // On the host's own clock this snapshot would still have years to live.
    repository.snapshot.expires = isoTime(startMs + 10 * dayMs);
    repository.bumpSnapshot();
    await assert.rejects(client.refresh(), { code: 'METADATA_EXPIRED' });
  });

  it('fixes the time once: a server that stalls cannot make fresh metadata expire half way', async () => {
    const { clock, repository, store } = bench();
    const source = repository.source();
    const slow = openRepositoryClient({
      source: {
        ...source,
        fetch: async (path, options) => {
          clock.setWallTime(clock.nowMs() + 30 * dayMs);
          return source.fetch(path, options);
        },
      },
      store,
      clock,
    });
    assert.equal((await slow.refresh()).changed, true);
  });
});

describe('refresh: what does not belong together', () => {
  it('refuses a snapshot and targets whose version is not the one named', async () => {
    const { client, repository } = bench();
    repository.publish();
    const real = repository.file('2.snapshot.json');
    repository.serve('2.snapshot.json', repository.file('1.snapshot.json'));
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
    repository.serve('2.snapshot.json', real);
    repository.serve('2.targets.json', repository.file('1.targets.json'));
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
    assert.equal(version(client, 'targets'), undefined);
  });

  it('accepts right digests, and refuses a well-signed file that has another', async () => {
    const { client, repository } = bench();
    repository.pinned = true;
    repository.publish();
    await client.refresh();
    repository.publish();
    repository.snapshot.expires = isoTime(startMs + 29 * dayMs);
    repository.serve('3.snapshot.json', repository.seal('snapshot'));
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
    assert.equal(version(client, 'snapshot'), 2);

    // The same for targets: the snapshot pins the digest of other bytes than those served.
    repository.publish();
    repository.targets.expires = isoTime(startMs + 300 * dayMs);
    repository.serve('4.targets.json', repository.seal('targets'));
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
    assert.equal(version(client, 'snapshot'), 4);
    assert.equal(version(client, 'targets'), 2);
  });

  it('refuses files whose digests nobody can check', async () => {
    const { client, repository } = bench();
    repository.timestamp.meta['snapshot.json'] = { version: 1, hashes: { md5: '00' } };
    repository.writeTimestamp();
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
  });

  for (const name of ['timestamp.json', '1.snapshot.json', '1.targets.json']) {
    it(`says that ${name} is missing`, async () => {
      const { client, repository } = bench();
      repository.files.delete(`metadata/${name}`);
      await assert.rejects(client.refresh(), { code: 'METADATA_MISSING' });
    });
  }

  it('refuses metadata of one role in place of another, though its keys are right', async () => {
    const { client, repository } = bench();
    repository.keys.timestamp = repository.keys.snapshot;
    repository.listKeys('timestamp', 1);
    repository.bumpRoot();
    repository.serve('timestamp.json', repository.file('1.snapshot.json'));
    await assert.rejects(client.refresh(), { code: 'METADATA_MALFORMED' });
  });

  it('asks for no more bytes than a signed length, and never for more than its own bound', async () => {
    const { repository, store, clock } = bench();
    repository.pinned = true;
    repository.writeTargets();
    repository.timestamp.meta['snapshot.json'].length = 123;
    repository.writeTimestamp();
    const source = repository.source();
    const asked = new Map<string, number>();
    const watch = {
      ...source,
      fetch: async (path: string, options: { maxBytes: number }) => {
        asked.set(path, options.maxBytes);
        return source.fetch(path, { ...options, maxBytes: 1_000_000 });
      },
    };
    await assert.rejects(openRepositoryClient({ source: watch, store, clock }).refresh());
    assert.equal(asked.get('metadata/1.snapshot.json'), 123);
    repository.timestamp.meta['snapshot.json'].length = Number.MAX_SAFE_INTEGER;
    repository.bumpTimestamp();
    await assert.rejects(openRepositoryClient({ source: watch, store, clock }).refresh());
    assert.equal(asked.get('metadata/1.snapshot.json'), defaultMetadataLimits.maxSnapshotBytes);
  });
});

describe('refresh: signatures', () => {
  for (const role of ['timestamp', 'snapshot', 'targets'] as const) {
    it(`refuses a ${role} that is unsigned, or signed by somebody else`, async () => {
      const { client, repository } = bench();
      const name = role === 'timestamp' ? 'timestamp.json' : `1.${role}.json`;
      repository.serve(name, encodeEnvelope([], repository[role]));
      await assert.rejects(client.refresh(), { code: 'SIGNATURE_THRESHOLD' });
      const stranger = makeKey();
      repository.serve(name, encodeEnvelope(signWith([stranger], repository[role]), repository[role]));
      await assert.rejects(client.refresh(), { code: 'SIGNATURE_WRONG_KEY' });
      assert.equal(version(client, role), undefined);
    });
  }

  it('does not count one public key under two key ids twice', async () => {
    const { client, repository } = bench();
    const [first] = repository.keys.targets;
    const twin = { ...first!.key, 'x-note': 'another id for the same key' };
    const twinId = keyId(twin);
    repository.root.keys[twinId] = twin;
    repository.root.roles.targets = { keyids: [first!.id, twinId], threshold: 2 };
    repository.bumpRoot();
    const [signature] = signWith([first!], repository.targets);
    const both = [signature!, { keyid: twinId, sig: signature!.sig }];
    repository.serve('1.targets.json', encodeEnvelope(both, repository.targets));
    await assert.rejects(client.refresh(), { code: 'SIGNATURE_THRESHOLD' });
  });
});

describe('target', () => {
  it('gives all that is signed about a release, and streams it from any place', async () => {
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
    for await (const chunk of client.streamTarget(target!, { offset: 4000 })) parts.push(chunk);
    assert.equal(Buffer.concat(parts).length, 1000);
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
