// Metadata that has expired by the clock of this host alone: the error names the clock first.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isWritError, WritError } from '../../../src/core/errors.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { openRepositoryClient } from '../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import { memoryTrustStore } from '../../../src/trust/store/trust-store.js';
import { withClock } from '../../../src/trust/trust-report.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';
import { serveDirectory } from '../../kit/net/serve-repository.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;

describe('expired metadata', () => {
  it('names the clock first if it is 400 days ahead of the server', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    await repository.publish({ a: 'x' });
    await using web = await serveDirectory(repository.directory, () => false);
    const clock = { ...systemClock, nowMs: () => Date.now() + 400 * dayMs };
    const source = openRepositorySource(web.url, { clock, version: '0.0.0' });
    const client = openRepositoryClient({
      source,
      store: memoryTrustStore(readFileSync(repository.rootPath)),
      clock,
    });
    const error = await client.refresh().catch((cause: unknown) => cause);
    await client.close();
    assert.ok(isWritError(error) && error.code === 'METADATA_EXPIRED', String(error));
    assert.match(
      error.message,
      /^the clock of this host is 400 d ahead of the server: root version 1 expired at /,
    );
    assert.match(
      error.hint,
      /^Check the clock of this host first: .* If it is right: The holders of the root keys/,
    );
  });

  it('is reported without the clock if it has expired by the time of the server too, or if the server sent none', () => {
    const error = new WritError('METADATA_EXPIRED', 'root expired', { facts: { expiredForMs: 2 * dayMs } });
    assert.equal(withClock(error, undefined), error);
    assert.equal(withClock(error, 2 * dayMs - 1), error);
    assert.notEqual(withClock(error, 2 * dayMs), error);
    const other = new WritError('METADATA_MIX', 'mixed', { facts: { expiredForMs: 0 } });
    assert.equal(withClock(other, dayMs), other);
  });
});

describe('the time of a server', () => {
  it('is its Date, and later by the Age of a cache', async () => {
    const dateMs = Date.UTC(2026, 0, 1);
    await using web = await httpFixture((_request, response) => {
      response.writeHead(200, { date: new Date(dateMs).toUTCString(), age: '60' }).end('x');
    });
    const clock = { ...systemClock, nowMs: () => dateMs + 100_000 };
    const source = openRepositorySource(web.url, { clock, version: '0.0.0' });
    assert.equal(source.clockAheadMs?.(), undefined);
    await source.fetch('a', { maxBytes: 10 });
    assert.equal(source.clockAheadMs?.(), 40_000);
    await source.close();
  });
});
