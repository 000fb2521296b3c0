// Target files from the signed entry to the policy on disk: whatever the name, the digests and the number of
// changes, a host activates exactly what was signed, and fetches it once.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../../kit/assert/long-case.js';
import { attackedHost } from '../../../kit/host/attacked-host.js';
import { testHost } from '../../../kit/host/test-host.js';
import type { Loose } from '../../../kit/repository/repository-simulator.js';
import { trustBench, type Verdict } from '../../../kit/trust/trust-bench.js';

describe('a target file', () => {
  it('is followed through ten changes, to the byte each time', longCase, async () => {
    using host = await attackedHost();
    for (let serial = 6; serial < 16; serial += 1) {
      await host.release(serial);
      await host.follows(serial);
    }
  });

  it('is fetched once: not by the next poll, not after a restart, and not when others change', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'web' }] });
    await test.publish('access', { 'policy.yaml': 'a' }, { serial: 1 });
    await test.publish('web', { 'policy.yaml': 'w' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(streams(test.repository.takeRequests()).length, 2);
    assert.equal((await test.pull()).outcome, 'unchanged');
    test.repository.bumpTimestamp();
    assert.equal((await test.pull()).outcome, 'unchanged');
    assert.deepEqual(streams(test.repository.takeRequests()), []);
    await test.publish('web', { 'policy.yaml': 'w2' }, { serial: 2 });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual(
      streams(test.repository.takeRequests()).map((one) => one.split('/')[1]),
      ['web'],
    );
    assert.equal(test.read('access/policy.yaml'), 'a');
  });

  it('may be deep inside its archive, with names similar to others', async () => {
    using test = testHost();
    const files = {
      'sub/dir/deeper/policy.yaml': '1',
      'a/b': '2',
      'a.b/c': '3',
      'äöü/\u{1f511}': '4',
      '#': '5',
      '?': '6',
    };
    await test.publish('access', files, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    for (const [path, content] of Object.entries(files)) assert.equal(test.read(`access/${path}`), content);
  });

  it('lies under its plain name where snapshots are not consistent', async () => {
    using bench = trustBench({ consistent: false });
    bench.repository.publishRelease({ bundle: 'dns', channel: 'stable' }, Buffer.from('archive'));
    await bench.refresh();
    const target = await bench.client.target('dns', 'stable');
    assert.equal(target?.archivePath, 'targets/dns/stable.tar.br');
  });
});

describe('digests of a target', () => {
  const rows: readonly [string, readonly string[], Verdict][] = [
    ['SHA-256 alone', ['sha256'], 'trusted'],
    ['SHA-256 and SHA-512', ['sha256', 'sha512'], 'trusted'],
    ['SHA-256 and an unknown one', ['blake9', 'sha256'], 'trusted'],
    // Our archives are known by their SHA-256; a digest that we cannot hold them to is no proof.
    ['SHA-512 alone', ['sha512'], 'TARGET_MALFORMED'],
    ['an unknown one', ['blake9'], 'TARGET_MALFORMED'],
    ['a broken one alone', ['md5'], 'TARGET_MALFORMED'],
  ];
  for (const [name, digests, verdict] of rows) {
    it(`${name}: ${verdict}`, async () => {
      using bench = trustBench();
      const release = { bundle: 'dns', channel: 'stable' };
      bench.repository.publishRelease(release, Buffer.from('archive'), { digests });
      assert.equal(await bench.refresh(), 'trusted');
      assert.equal(await bench.find('dns'), verdict);
    });
  }

  it('none at all makes the whole file malformed: it would let every content pass', async () => {
    using bench = trustBench();
    bench.repository.publishRelease({ bundle: 'dns', channel: 'stable' }, Buffer.from('archive'), {
      digests: [],
    });
    assert.equal(await bench.refresh(), 'METADATA_MALFORMED');
  });
});

describe('names that every object has', () => {
  const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'];

  it('are not listed because JavaScript objects have them', async () => {
    using bench = trustBench();
    await bench.refresh();
    for (const name of names) {
      assert.equal(await bench.find(name), 'unknown', name);
      assert.equal(await bench.client.target(name, name), undefined, name);
      assert.equal(bench.client.knownTarget(name, 'stable'), undefined, name);
    }
  });

  it('are targets like others where they are listed', async () => {
    using bench = trustBench();
    const { repository } = bench;
    repository.addRelease({ bundle: 'constructor', channel: 'stable' }, Buffer.from('archive'));
    const { length, hashes } = repository.targets.targets['constructor/stable.tar.br'];
    for (const name of names) define(repository.targets.targets, name, { length, hashes });
    define(repository.targets, '__proto__', { polluted: true });
    repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(await bench.find('constructor'), 'trusted');
    assert.equal((await bench.client.target('constructor', 'stable'))?.release.bundle, 'constructor');
    assert.equal(await bench.find('toString'), 'unknown');
    assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
  });

  it('do no harm as key ids, digests, roles and members of snapshots', async () => {
    using bench = trustBench();
    const { repository } = bench;
    const [key] = repository.keys.root;
    for (const name of names) {
      define(repository.root.keys, name, key?.key);
      define(repository.root.roles, name, { keyids: [], threshold: 1 });
      define(repository.snapshot.meta, name, { version: 1 });
      define(repository.timestamp, name, 1);
    }
    repository.bumpRoot();
    repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    // Seen once, such a member of the snapshot is held to its version like every other.
    define(repository.snapshot.meta, '__proto__', { version: 2 });
    repository.bumpSnapshot();
    assert.equal(await bench.refresh(), 'trusted');
    define(repository.snapshot.meta, '__proto__', { version: 1 });
    repository.bumpSnapshot();
    assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
  });
});

/** As a parser would: an assignment to `__proto__` sets no member. */
function define(object: Loose, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function streams(requests: readonly string[]): string[] {
  return requests.filter((one) => one.startsWith('STREAM'));
}
