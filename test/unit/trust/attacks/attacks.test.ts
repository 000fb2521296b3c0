// One test for each attack that the specification names (section 1.5.2) and for slow retrieval, by its name: what
// the attacker does, the code by which it is refused, and a policy that stays as it was on the disk of the host.
// Here he owns the server, the network or a mirror; attacks-with-keys.test.ts has those where he has keys.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../../../src/core/error-codes.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { attackedHost } from '../../../kit/host/attacked-host.js';
import { bentServer, dripping, endless } from '../../../kit/net/bent-server.js';
import { makeKey, type RepositorySimulator } from '../../../kit/repository/repository-simulator.js';
import { dayMs, isoTime } from '../../../kit/repository/simulated-metadata.js';
import { down, simulatedMirror } from '../../../kit/repository/simulated-mirror.js';

const trustFiles = ['root.json', 'timestamp.json', 'snapshot.json', 'targets.json'];

describe('arbitrary installation', () => {
  it('is refused where another archive lies under the signed name: DOWNLOAD_DIGEST', async () => {
    using host = await attackedHost();
    const honest = await host.release(6);
    const path = archivePath(host.repository);
    const evil = Buffer.from(honest).fill(0x41, 20);
    host.repository.files.set(path, evil);
    await host.resists({ code: 'DOWNLOAD_DIGEST', freshness: 'fresh' });
    host.repository.files.set(path, honest);
    await host.follows(6);
  });

  it(
    'is refused when an attacker on the server signs with another key: SIGNATURE_WRONG_KEY',
    longCase,
    async () => {
      for (const role of ['timestamp', 'snapshot', 'targets'] as const) {
        using host = await attackedHost();
        host.repository.signers.set(role, [makeKey()]);
        await host.release(6);
        await host.resists({ code: 'SIGNATURE_WRONG_KEY', keeps: ['root.json', `${role}.json`] });
        host.repository.signers.delete(role);
        await host.release(7);
        await host.follows(7);
      }
    },
  );

  it('is refused when that key claims the id of the right one: SIGNATURE_THRESHOLD', async () => {
    using host = await attackedHost();
    const [right] = host.repository.keys.timestamp;
    host.repository.signers.set('timestamp', [{ ...makeKey(), id: right?.id ?? '' }]);
    await host.release(6);
    await host.resists({ code: 'SIGNATURE_THRESHOLD', keeps: trustFiles });
  });
});

describe('endless data', () => {
  it('is cut off in metadata at the bound of the role: DOWNLOAD_TOO_LARGE', longCase, async () => {
    for (const [name, bytes] of [
      ['2.root.json', 512_001],
      ['timestamp.json', 50_000_000],
      ['3.snapshot.json', 2_000_001],
      ['3.targets.json', 5_000_001],
    ] as const) {
      using host = await attackedHost();
      await host.release(6);
      host.repository.serve(name, Buffer.alloc(bytes, ' '));
      await host.resists({ code: 'DOWNLOAD_TOO_LARGE', keeps: ['root.json', 'targets.json'] });
    }
  });

  it('is cut off in an archive at its signed length: DOWNLOAD_TOO_LARGE', async () => {
    await using server = await bentServer();
    using host = await attackedHost({ source: server.source });
    await host.release(6);
    server.bent = { path: /^targets\//, answer: endless };
    await host.resists({ code: 'DOWNLOAD_TOO_LARGE', freshness: 'fresh' });
    server.bent = undefined;
    await host.follows(6);
  });
});

describe('extraneous dependencies', () => {
  it('are refused from a role without their path, and a bundle that is not configured is not fetched', async () => {
    using host = await attackedHost();
    const { repository } = host;
    // The team that may sign web/* lists a release of ours, and comes before the role that may.
    repository.delegate('targets', { name: 'web-team', paths: ['web/*'] });
    repository.delegate('targets', { name: 'access-team', paths: ['access/*'] });
    const { targets } = repository.targets;
    repository.signedOf('access-team').targets['access/stable.tar.br'] = targets['access/stable.tar.br'];
    delete targets['access/stable.tar.br'];
    const forged = { bundle: 'access', channel: 'stable', serial: 99 };
    repository.addRelease(forged, Buffer.from('not ours'), { listedBy: 'web-team' });
    const further = { bundle: 'web', channel: 'stable', serial: 1 };
    repository.publishRelease(further, Buffer.from('nobody asked for it'), { listedBy: 'web-team' });
    await host.resists({});
    const requests = repository.takeRequests();
    assert.deepEqual(requests.slice(-1), ['GET metadata/1.access-team.json']);
    assert.equal(
      requests.some((one) => one.startsWith('STREAM') || one.includes('web-team')),
      false,
    );
    assert.equal(host.status().bundles[0]?.server?.serial, 5);
  });
});

describe('indefinite freeze', () => {
  it('ends when the timestamp expires: METADATA_EXPIRED, and the status has the start of the freeze', async () => {
    using host = await attackedHost();
    const expiresAtMs = Date.parse(host.repository.timestamp.expires);
    await host.test.clock.advance(6 * dayMs);
    await host.resists({});
    await host.test.clock.advance(3 * dayMs);
    await host.resists({ code: 'METADATA_EXPIRED', freshness: 'frozen', keeps: trustFiles });
    const { freshness } = host.status();
    assert.deepEqual(
      [freshness.expired?.role, freshness.expired?.expiresAtMs, freshness.sinceMs],
      ['timestamp', expiresAtMs, expiresAtMs],
    );
    assert.ok((freshness.ageMs ?? 0) >= 3 * dayMs);
    host.repository.moveTime(9 * dayMs);
    await host.release(6);
    await host.follows(6);
  });

  it('does not end when the clock of the host is set back, because the newest signed time counts', async () => {
    using host = await attackedHost();
    const { repository, test } = host;
    const startMs = test.clock.nowMs();
    repository.targets.expires = isoTime(startMs + 5 * dayMs);
    repository.moveTime(4 * dayMs);
    await host.release(6);
    await test.clock.advance(4 * dayMs);
    await host.follows(6);
    repository.moveTime(4 * dayMs);
    repository.bumpTimestamp();
    test.clock.setWallTime(startMs);
    const { warnings } = await host.resists({ code: 'METADATA_EXPIRED', freshness: 'frozen' });
    assert.deepEqual(warnings, []);
    assert.equal(host.status().freshness.expired?.role, 'targets');
    assert.ok(host.status().problems.some(({ code }) => code === 'CLOCK_BEHIND'));
  });
});

describe('malicious mirror', () => {
  it('that is silent, forges or lags does not prevent updates while another one is honest', async () => {
    const [bad, good] = [simulatedMirror('https://bad/'), simulatedMirror('https://good/')];
    using host = await attackedHost({ mirrors: [bad, good] });
    const spoil: (() => void)[] = [
      () => {
        bad.fault = down();
      },
      () => bad.files.set('metadata/timestamp.json', Buffer.from('{}')),
      () => bad.files.set('metadata/timestamp.json', forgedTimestamp(host.repository)),
      () => bad.files.delete(`metadata/${host.repository.targets.version}.targets.json`),
      () => bad.files.delete(archivePath(host.repository)),
      () => bad.files.set(archivePath(host.repository), Buffer.from('another archive')),
    ];
    for (const [index, act] of spoil.entries()) {
      const serial = 6 + index;
      bad.fault = undefined;
      await host.release(serial);
      act();
      await host.follows(serial);
      // A mirror that failed rests for a while; each of these is to be met.
      await host.test.clock.advance(700_000);
    }
  });

  it('alone can only be silent or be refused: the policy stays active, and the status names each mirror', async () => {
    const [a, b] = [simulatedMirror('https://a/'), simulatedMirror('https://b/')];
    using host = await attackedHost({ mirrors: [a, b] });
    await host.release(6);
    a.fault = down();
    b.files.set('metadata/timestamp.json', forgedTimestamp(host.repository));
    const { problems } = await host.resists({ code: 'SIGNATURE_WRONG_KEY', keeps: trustFiles });
    assert.ok(JSON.stringify(problems[0]?.facts).includes('https://a/'));
    assert.ok(JSON.stringify(problems[0]?.facts).includes('https://b/'));
  });

  function forgedTimestamp(repository: RepositorySimulator): Buffer {
    repository.signers.set('timestamp', [makeKey()]);
    const bytes = repository.seal('timestamp', { ...repository.timestamp, version: 99 });
    repository.signers.delete('timestamp');
    return bytes;
  }
});

describe('mix-and-match', () => {
  it('of parts of two publishes is refused by their versions: METADATA_MIX', async () => {
    for (const role of ['snapshot', 'targets']) {
      using host = await attackedHost();
      await host.release(6);
      await host.follows(6);
      await host.release(7);
      host.repository.serve(`4.${role}.json`, host.repository.file(`3.${role}.json`));
      await host.resists({ code: 'METADATA_MIX', keeps: ['root.json', `${role}.json`] });
      assert.equal(host.status().bundles[0]?.server?.serial, 6);
    }
  });

  it('of two snapshots of one version is refused by their digests: METADATA_MIX', async () => {
    using host = await attackedHost();
    host.repository.pinned = true;
    await host.release(6);
    // Well signed by the stolen key of the snapshot: the same length, another content.
    host.repository.alter('snapshot', (signed) => {
      signed.spec_version = '1.0.33';
    });
    await host.resists({ code: 'METADATA_MIX', keeps: ['root.json', 'snapshot.json', 'targets.json'] });
  });

  it('of the metadata of today with the archive of yesterday is refused: DOWNLOAD_DIGEST', async () => {
    using host = await attackedHost();
    const yesterday = host.repository.files.get(archivePath(host.repository)) ?? assert.fail('no archive');
    await host.release(6);
    const path = archivePath(host.repository);
    const { length } = host.repository.files.get(path) ?? assert.fail('no archive');
    host.repository.files.set(path, Buffer.concat([yesterday, Buffer.alloc(length)]).subarray(0, length));
    await host.resists({ code: 'DOWNLOAD_DIGEST', freshness: 'fresh' });
  });
});

describe('wrong software', () => {
  it('is refused when the signed entry of another bundle has the name of this one: TARGET_MALFORMED', async () => {
    using host = await attackedHost();
    const { targets } = host.repository.targets;
    await host.test.publish('web', { 'policy.yaml': 'of the web servers' }, { serial: 9 });
    targets['access/stable.tar.br'] = targets['web/stable.tar.br'];
    host.repository.publish();
    await host.resists({ code: 'TARGET_MALFORMED', freshness: 'fresh' });
    await host.release(6);
    await host.follows(6);
  });

  it('is refused when the archive of another bundle has the name of this one', async () => {
    using host = await attackedHost();
    await host.test.publish('web', { 'policy.yaml': 'of the web servers' }, { serial: 9 });
    const web = host.repository.files.get(archivePath(host.repository, 'web')) ?? assert.fail('no archive');
    await host.release(6);
    host.repository.files.set(archivePath(host.repository), web);
    const { problems } = await host.resists({ code: wrongLength(web, host.repository), freshness: 'fresh' });
    assert.equal(problems.length, 1);
  });
});

describe('slow retrieval', () => {
  const impatient = { idleTimeoutMs: 120, metadataTimeoutMs: 400, archiveTimeoutMs: 400 };

  it('of metadata ends at the deadline: DOWNLOAD_TIMEOUT, and the status is stale in time', async () => {
    await using server = await bentServer(impatient);
    using host = await attackedHost({ source: server.source });
    await host.release(6);
    server.bent = { path: /timestamp/, answer: dripping };
    await host.resists({ code: 'DOWNLOAD_TIMEOUT', freshness: 'fresh', keeps: trustFiles });
    await host.test.clock.advance(1_000_000);
    await host.resists({ code: 'DOWNLOAD_TIMEOUT', freshness: 'stale', keeps: trustFiles });
    assert.ok((host.status().freshness.ageMs ?? 0) >= 1_000_000);
    server.bent = undefined;
    await host.follows(6);
  });

  it('of an archive ends at the deadline: DOWNLOAD_TIMEOUT', longCase, async () => {
    await using server = await bentServer(impatient);
    using host = await attackedHost({ source: server.source });
    await host.release(6);
    server.bent = { path: /^targets\//, answer: dripping };
    await host.resists({ code: 'DOWNLOAD_TIMEOUT', freshness: 'fresh' });
    server.bent = undefined;
    await host.follows(6);
  });
});

/** Where the present release of a bundle lies. */
function archivePath({ targets }: RepositorySimulator, bundle = 'access'): string {
  const { hashes } = targets.targets[`${bundle}/stable.tar.br`];
  return `targets/${bundle}/${hashes.sha256}.stable.tar.br`;
}

/** Of an archive that is not the signed one: what is noticed first. */
function wrongLength(bytes: Buffer, { targets }: RepositorySimulator): ErrorCode {
  const { length } = targets.targets['access/stable.tar.br'];
  if (bytes.length === length) return 'DOWNLOAD_DIGEST';
  return bytes.length > length ? 'DOWNLOAD_TOO_LARGE' : 'DOWNLOAD_TRUNCATED';
}
