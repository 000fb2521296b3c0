// A stolen key signs the highest serial, or a serial above it: hosts keep a readable ledger, and the bundle can be published
// again after a withdrawal.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import { encodeReleaseInfo } from '../../../src/core/release/release.js';
import { maxReadSerial, maxSerial } from '../../../src/core/release/serial.js';
import { requireKeysOf } from '../../../src/publisher/keys/key-directory.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { findHead } from '../../../src/publisher/repository/listing.js';
import { changeRepository, readStateBeforeLock } from '../../../src/publisher/signing/sign-change.js';
import { findRoleHolder, signRole } from '../../../src/publisher/signing/sign-role.js';
import { checkRepository } from '../../../src/publisher/upkeep/check-repository.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type PublishedHost, publishedHost } from '../../kit/repository/published-host.js';
import { changeOptions } from '../../kit/repository/sample-repository.js';

const bundle = 'dns-edge';

function twoBundles(dir: TempDir): PublishedHost {
  return publishedHost(dir, { bundles: [{ name: bundle }, { name: 'web' }] });
}

/** The head of the channel gets another serial, signed with the keys of the publisher. */
async function signSerial({ repository }: PublishedHost, serial: number): Promise<void> {
  const options = changeOptions(repository);
  const seen = readStateBeforeLock(options);
  const head = findHead(seen, bundle, 'stable');
  assert.ok(head);
  const { file, path, release } = head;
  const entries = { [path]: { ...file, custom: { writ: encodeReleaseInfo({ ...release, serial }) } } };
  const signers = await requireKeysOf(options.keys, findRoleHolder(seen, 'targets'));
  await changeRepository(options, seen, async (writer, before, clock) => {
    const state = await signRole({ writer, state: before, role: 'targets', entries, signers, clock });
    return { state, done: {} };
  });
}

async function withdraw({ repository }: PublishedHost, ...serials: readonly number[]): Promise<void> {
  await withdrawRelease({ bundle, serials, reason: 'stolen key' }, changeOptions(repository));
}

async function pulled({ host }: PublishedHost): Promise<(number | string | undefined)[]> {
  const { result } = await host.sync();
  return [...result.bundles.map(({ toSerial }) => toSerial), host.read(`${bundle}/policy`)];
}

function acceptedSerials({ host }: PublishedHost): readonly number[] {
  const { accepted } = host.reopen().ledger.read();
  return (accepted[`${bundle}/stable`] ?? []).map(({ serial }) => serial);
}

describe('the highest serial', () => {
  it('is accepted by a host, stored in a readable ledger, and left after a withdrawal', async () => {
    using dir = tempDir();
    using published = twoBundles(dir);
    await published.repository.publish({ policy: 'web' }, { bundle: 'web' });
    await published.repository.publish({ policy: 'one' });
    await pulled(published);
    await published.repository.publish({ policy: 'stolen' }, { afterSerial: maxSerial - 1 });
    assert.deepEqual(await pulled(published), [maxSerial, 1, 'stolen']);
    assert.deepEqual(acceptedSerials(published), [1, maxSerial]);
    const error = await rejectsCode('REPOSITORY_INVALID', published.repository.publish({ policy: 'two' }));
    assert.match(error.hint, /`writ withdraw --bundle dns-edge --serial 1000000000000`/);
    await withdraw(published, maxSerial);
    assert.deepEqual(await pulled(published), [1, 1, 'one']);
    const { release } = await published.repository.publish({ policy: 'two' });
    assert.equal(release.serial, 2);
    assert.deepEqual(await pulled(published), [2, 1, 'two']);
    await published.repository.publish({ policy: 'three' });
    assert.deepEqual(await pulled(published), [3, 1, 'three']);
  });

  for (const serial of [maxSerial + 1, 9e15, maxReadSerial])
    it(
      `is below ${serial}: hosts refuse the release alone, and the publisher withdraws it`,
      longCase,
      async () => {
        using dir = tempDir();
        using published = twoBundles(dir);
        await published.repository.publish({ policy: 'one' });
        await pulled(published);
        await published.repository.publish({ policy: 'stolen' });
        await published.repository.publish({ policy: 'web' }, { bundle: 'web' });
        await signSerial(published, serial);
        const { result } = await published.host.sync();
        const [refused, web] = result.bundles;
        assert.deepEqual([refused?.problem?.code, web?.toSerial], ['TARGET_MALFORMED', 1]);
        assert.match(refused?.problem?.message ?? '', new RegExp(`serial ${serial} of dns-edge is above`));
        assert.deepEqual(acceptedSerials(published), [1]);
        await rejectsCode('REPOSITORY_INVALID', published.repository.publish({ policy: 'three' }));
        await withdraw(published, serial);
        assert.deepEqual(await pulled(published), [2, 1, 'stolen']);
        await published.repository.publish({ policy: 'three' });
        assert.deepEqual(await pulled(published), [3, 1, 'three']);
      },
    );

  it('exceeded by a listed release, is named by a check of the repository', async () => {
    using dir = tempDir();
    using published = twoBundles(dir);
    await published.repository.publish({ policy: 'one' });
    await signSerial(published, maxSerial + 1);
    const options = { ...changeOptions(published.repository), limits: defaultArchiveLimits };
    const { problems } = await checkRepository(options);
    assert.deepEqual(
      problems.map(({ code }) => code),
      ['TARGET_MALFORMED'],
    );
  });

  it('withdrawn on each channel, is followed by the lowest serial that no release had', async () => {
    using dir = tempDir();
    using published = twoBundles(dir);
    await published.repository.publish({ policy: 'one' });
    await published.repository.publish({ policy: 'bad' });
    await published.repository.publish({ policy: 'stolen' }, { afterSerial: maxSerial - 1 });
    await withdraw(published, 2, maxSerial);
    const { release } = await published.repository.publish({ policy: 'three' });
    assert.deepEqual([release.serial, release.withdrawn], [3, [2, maxSerial]]);
  });

  it('of the only release leads from each hint to a new bundle name', async () => {
    using dir = tempDir();
    using published = twoBundles(dir);
    await published.repository.publish({ policy: 'one' });
    await signSerial(published, maxSerial);
    const publishing = await rejectsCode(
      'REPOSITORY_INVALID',
      published.repository.publish({ policy: 'two' }),
    );
    assert.match(publishing.hint, /If no other release is left, publish under a new bundle name\./);
    const options = changeOptions(published.repository);
    const request = { bundle, serials: [1, maxSerial], reason: 'stolen key' };
    const withdrawing = await rejectsCode('RELEASE_UNAVAILABLE', withdrawRelease(request, options));
    assert.match(withdrawing.hint, /^No serial can follow 1000000000000: publish .* under a new bundle name/);
  });

  it('as --after-serial of a new bundle is a fault of the flag', async () => {
    using dir = tempDir();
    using published = twoBundles(dir);
    const publish = published.repository.publish({ policy: 'one' }, { afterSerial: maxSerial });
    const error = await rejectsCode('USAGE', publish);
    assert.match(error.message, /can follow 1000000000000 of --after-serial$/);
  });

  it('on another channel, not withdrawn, keeps the bundle from being published', async () => {
    using dir = tempDir();
    using published = twoBundles(dir);
    await published.repository.publish({ policy: 'one' });
    await published.repository.publish({ policy: 'canary' }, { channel: 'canary' });
    await published.repository.publish(
      { policy: 'stolen' },
      { channel: 'canary', afterSerial: maxSerial - 1 },
    );
    const error = await rejectsCode('REPOSITORY_INVALID', published.repository.publish({ policy: 'two' }));
    assert.equal(error.facts['serial'], maxSerial);
    await withdraw(published, maxSerial);
    assert.equal((await published.repository.publish({ policy: 'two' })).release.serial, 3);
  });
});
