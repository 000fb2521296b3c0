// A host that has no network: it takes an exported directory as file://, under the same rules as a server.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { exportRepository } from '../../../src/publisher/upkeep/export-repository.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { publishedHost } from '../../kit/repository/published-host.js';
import { changeOptions, noReport } from '../../kit/repository/sample-repository.js';

describe('a host without a network', longCase, () => {
  it('takes releases and withdrawals from a stick, and refuses an older stick', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, { bundles: [{ name: 'dns-edge' }] });
    const { repository, host, clock } = published;
    const carry = (name: string) =>
      exportRepository({
        repository: repository.directory,
        directory: dir.join(name),
        clock,
        durableFs: createDurableFs(),
        lockWaitMs: 0,
        report: noReport,
      });
    await repository.publish({ policy: 'one' });
    await carry('old');
    await repository.publish({ policy: 'two' });
    await carry('stick');
    published.serveCopy('stick');
    assert.equal((await host.pull()).outcome, 'activated');
    assert.equal(host.read('dns-edge/policy'), 'two');
    published.serveCopy('old');
    assert.deepEqual(
      (await host.pull()).problems.map(({ code }) => code),
      ['METADATA_ROLLBACK'],
    );
    await withdrawRelease({ bundle: 'dns-edge', serials: [2], reason: '' }, changeOptions(repository));
    await carry('stick');
    published.serveCopy('stick');
    assert.equal((await host.pull()).outcome, 'activated');
    assert.equal(host.read('dns-edge/policy'), 'one');
    await host.clock.advance(8 * 86_400_000);
    assert.deepEqual(
      (await host.pull()).problems.map(({ code }) => code),
      ['METADATA_EXPIRED'],
    );
    assert.equal(host.read('dns-edge/policy'), 'one');
  });
});
