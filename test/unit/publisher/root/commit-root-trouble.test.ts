// A root that is committed in trouble: a stolen key, a repository that slept, a crash at any write.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { openKey } from '../../../../src/publisher/keys/key-directory.js';
import { readKeyFile } from '../../../../src/publisher/keys/key-file.js';
import { signMetadata } from '../../../../src/publisher/keys/signer.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import {
  commit,
  keysAt,
  newKey,
  noPassphrases,
  proposal,
  signedBy,
} from '../../../kit/repository/ceremony.js';
import { complete, dayMs, hostOf, replacing, versionsOf } from '../../../kit/repository/committed-root.js';
import { metadataPath, sampleRepository } from '../../../kit/repository/sample-repository.js';

describe('a stolen key', () => {
  it('of the root changes nothing alone: neither by a commit nor by a root put into the repository', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const mallory = newKey(dir, 'mallory', 'mallory');
    const replace = [{ role: 'root' as const, keys: [mallory] }];
    const evil = proposal(repository, { replace, thresholds: { root: 1 } }, { danger: 'accepted' });
    const { root } = await signedBy(repository, evil, ['root-1.key']);
    fs.writeFileSync(metadataPath(repository, '2.root.json'), root.bytes);
    const host = hostOf(repository);
    await rejectsCode('SIGNATURE_THRESHOLD', host.refresh());
    await rejectsCode('REPOSITORY_INVALID', repository.refresh());
  });

  it('of the timestamp that pushed its version to the end is replaced, and hosts accept version 1 of the new key', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const host = hostOf(repository);
    const path = metadataPath(repository, 'timestamp.json');
    const thief = await openKey(readKeyFile(`${repository.keys}/timestamp.key`)!, noPassphrases);
    const { signed } = JSON.parse(fs.readFileSync(path, 'utf8'));
    const farAhead = { ...signed, version: Number.MAX_SAFE_INTEGER };
    fs.writeFileSync(path, await signMetadata(farAhead, [thief]));
    assert.equal((await versionsOf(host))['timestamp'], Number.MAX_SAFE_INTEGER);
    await rejectsCode('REPOSITORY_INVALID', repository.refresh());
    const result = await commit(
      repository,
      await complete(repository, { replace: [replacing(dir, 'timestamp')] }),
    );
    assert.deepEqual(result.signed, { timestamp: 1 });
    assert.deepEqual(await versionsOf(host), { root: 2, timestamp: 1, snapshot: 2, targets: 2 });
  });

  it('of the snapshot that pushed its version to the end is replaced alone, and hosts accept the versions of the new key', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const host = hostOf(repository);
    const version = Number.MAX_SAFE_INTEGER;
    const path = (name: string): string => metadataPath(repository, name);
    const signedIn = (name: string) => JSON.parse(fs.readFileSync(path(name), 'utf8')).signed;
    const keyOf = (role: string) => openKey(readKeyFile(`${repository.keys}/${role}.key`)!, noPassphrases);
    const snapshot = { ...signedIn('2.snapshot.json'), version };
    const bytes = await signMetadata(snapshot, [await keyOf('snapshot')]);
    fs.writeFileSync(path(`${version}.snapshot.json`), bytes);
    // The server names what it finds.
    const timestamp = { ...signedIn('timestamp.json'), version: 3, meta: { 'snapshot.json': { version } } };
    fs.writeFileSync(path('timestamp.json'), await signMetadata(timestamp, [await keyOf('timestamp')]));
    assert.equal((await versionsOf(host))['snapshot'], version);
    await rejectsCode('REPOSITORY_INVALID', repository.refresh());
    const change = { replace: [replacing(dir, 'snapshot')] };
    await commit(repository, await complete(repository, change));
    const { root, snapshot: now, timestamp: next } = await versionsOf(host);
    assert.deepEqual([root, next], [2, 4]);
    assert.ok(now !== undefined && now < 2000, String(now));
  });
});

describe('a repository that slept', () => {
  it('gets a new root also where every role has expired, and verifies again with the keys of the roles', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await repository.publish({ a: 'a' });
    await clock.advance(400 * dayMs);
    const offline = dir.join('offline');
    fs.mkdirSync(offline);
    fs.copyFileSync(`${repository.keys}/root.json`, `${offline}/root.json`);
    const signed = await complete(repository, {});
    const rootOnly = await commit(repository, signed, { keys: keysAt(offline) });
    assert.deepEqual([rootOnly.kind, rootOnly.signed, rootOnly.expired], ['committed', {}, 'timestamp']);
    const whole = await commit(repository, signed);
    assert.deepEqual(whole.signed, { targets: 3, snapshot: 3, timestamp: 3 });
    const host = hostOf(repository);
    await host.refresh();
    assert.equal((await host.target('dns-edge', 'stable'))?.release.serial, 1);
  });
});

describe('a crash during a commit', longCase, () => {
  it('at any write is healed by running it again; hosts miss nothing but the moment between root and timestamp', async () => {
    const count = await crashAt(Number.POSITIVE_INFINITY);
    assert.ok(count >= 8, `${count} operations`);
    for (let at = 0; at < count; at += 1) await crashAt(at);
  });
});

/** Commits new keys of all roles, fails at the operation of this number, and commits again. @returns how many there were */
async function crashAt(number: number): Promise<number> {
  using dir = tempDir();
  const repository = sampleRepository(dir);
  const host = hostOf(repository);
  await host.refresh();
  const replace = (['targets', 'snapshot', 'timestamp'] as const).map((role) => replacing(dir, role));
  const signed = await complete(repository, { replace });
  const seen: string[] = [];
  const before = ({ op }: { op: string }): void => {
    seen.push(op);
    if (seen.length > number) throw new Error(`crash at ${op}`);
  };
  const durableFs = createDurableFs({ before });
  if (number === Number.POSITIVE_INFINITY) {
    await commit(repository, signed, { durableFs });
    return seen.length;
  }
  await assert.rejects(commit(repository, signed, { durableFs }), /crash at/);
  const hole = fs.existsSync(metadataPath(repository, '2.root.json')) && !seen.includes('keys.root:write');
  const live = JSON.parse(fs.readFileSync(metadataPath(repository, 'timestamp.json'), 'utf8')).signed.version;
  if (hole && live === 1) await rejectsCode('SIGNATURE_WRONG_KEY', host.refresh({ conditional: 'no' }));
  else await host.refresh({ conditional: 'no' });
  await commit(repository, signed);
  const { root, timestamp } = await versionsOf(host);
  assert.deepEqual([root, timestamp], [2, 2]);
  assert.deepEqual(await versionsOf(hostOf(repository)), await versionsOf(host));
  const anchor = JSON.parse(fs.readFileSync(`${repository.keys}/root.json`, 'utf8'));
  assert.equal(anchor.signed.version, 2);
  return seen.length;
}
