// Metadata that has ended, that does not belong together, or that the wrong keys have signed.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultMetadataLimits } from '../../../src/core/limits.js';
import { keyId } from '../../../src/core/tuf/signature-schemes.js';
import { openRepositoryClient } from '../../../src/trust/repository-client.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { encodeEnvelope, isoTime, makeKey, signWith } from '../../kit/repository/repository-simulator.js';
import { bench, dayMs, startMs, version } from '../../kit/trust/client-bench.js';

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

  it('checks stored files again, so that a server that only returns "not modified" cannot freeze a host', async () => {
    const { client, clock } = bench();
    await client.refresh();
    clock.setWallTime(startMs + 7 * dayMs);
    await assert.rejects(client.refresh(), { code: 'METADATA_EXPIRED' });
  });

  it('checks a stored snapshot again', async () => {
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

  it('checks stored targets again under a fresh timestamp and snapshot', async () => {
    const { client, clock, repository } = bench();
    repository.targets.expires = isoTime(startMs + dayMs);
    repository.publish();
    await client.refresh();
    clock.setWallTime(startMs + 2 * dayMs);
    repository.bumpTimestamp();
    const error = await rejectsCode('METADATA_EXPIRED', client.refresh());
    assert.equal(error.facts['role'], 'targets');
  });

  it('accepts fresh metadata after the stored metadata expired long ago', async () => {
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
    // By the clock of the host this snapshot would be valid for years.
    repository.snapshot.expires = isoTime(startMs + 10 * dayMs);
    repository.bumpSnapshot();
    await assert.rejects(client.refresh(), { code: 'METADATA_EXPIRED' });
  });

  it('reads the time once, so that a slow server cannot make fresh metadata expire during the refresh', async () => {
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

describe('refresh: files that do not match', () => {
  it('refuses a snapshot and targets of another version than the named one', async () => {
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

  it('accepts correct digests, and refuses a signed file with another digest', async () => {
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

  it('refuses files with digests of unknown algorithms only', async () => {
    const { client, repository } = bench();
    repository.timestamp.meta['snapshot.json'] = { version: 1, hashes: { md5: '00' } };
    repository.writeTimestamp();
    await assert.rejects(client.refresh(), { code: 'METADATA_MIX' });
  });

  for (const name of ['timestamp.json', '1.snapshot.json', '1.targets.json']) {
    it(`reports that ${name} is missing`, async () => {
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

  it('reads no more bytes than the signed length, and never more than its own bound', async () => {
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
    it(`refuses a ${role} that is unsigned, or signed by another key`, async () => {
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
