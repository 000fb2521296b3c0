// A cache that serves the timestamp from before a rotation of its key: it is old and not forged, and refused all the same. Errors of
// fetched files have their URL, without its secrets.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { plainUrls, withUrl } from '../../../../src/trust/sources/fetched-url.js';
import { trustBench } from '../../../kit/trust/trust-bench.js';

describe('a timestamp from before the rotation of its key', () => {
  it('is METADATA_ROLLBACK with its URL, is not stored, and the next honest one is accepted', async () => {
    using bench = trustBench();
    assert.equal(await bench.refresh(), 'trusted');
    const { repository } = bench;
    const old = repository.file('timestamp.json');
    repository.rotate('timestamp');
    repository.writeTimestamp();
    const current = repository.file('timestamp.json');
    const stale = async (): Promise<void> => {
      repository.files.set('metadata/timestamp.json', old);
      const before = bench.storedBytes('timestamp');
      assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
      assert.equal(bench.refusal?.facts['url'], 'memory:metadata/timestamp.json');
      assert.deepEqual(bench.storedBytes('timestamp'), before);
    };
    // Before anything was accepted under the new keys, and after it.
    await stale();
    repository.files.set('metadata/timestamp.json', current);
    assert.equal(await bench.refresh(), 'trusted');
    await stale();
  });

  it('is SIGNATURE_WRONG_KEY where it is newer than all that this host had under those keys', async () => {
    using bench = trustBench();
    assert.equal(await bench.refresh(), 'trusted');
    const { repository } = bench;
    const stolen = [...repository.keys.timestamp];
    repository.rotate('timestamp');
    repository.signers.set('timestamp', stolen);
    repository.timestamp.version += 1;
    repository.writeTimestamp();
    assert.equal(await bench.refresh(), 'SIGNATURE_WRONG_KEY');
    assert.equal(bench.refusal?.facts['url'], 'memory:metadata/timestamp.json');
  });
});

describe('the URL of a fetched file', () => {
  it('is in message and facts, without a query, a name and a password', () => {
    const signed = 'https://cdn.example/a?X-Signature=s3cret';
    const error = new WritError('SERVER_ERROR', `${signed} answered with status 403`, {
      facts: { url: signed, status: 403 },
    });
    const named = withUrl(error, 'https://other/');
    assert.ok(named instanceof WritError);
    assert.equal(named.message, 'https://cdn.example/a?... answered with status 403');
    assert.deepEqual(named.facts, { url: 'https://cdn.example/a?...', status: 403 });
    assert.equal(plainUrls('http://anna:pw@host/x#y, then'), 'http://host/x?..., then');
  });

  it('is added where the error has none, and not to an error of this host', () => {
    const error = new WritError('SIGNATURE_THRESHOLD', 'too few', { facts: { role: 'targets' } });
    const named = withUrl(error, 'https://a/metadata/2.targets.json');
    assert.ok(named instanceof WritError);
    assert.deepEqual(named.facts, { role: 'targets', url: 'https://a/metadata/2.targets.json' });
    assert.equal(named.message, 'too few (https://a/metadata/2.targets.json)');
    const full = new WritError('DISK_FULL', 'no room');
    assert.equal(withUrl(full, 'https://a/'), full);
  });
});
