// A host with bundles that a team signs: a delegation, a publish, a withdrawal, a change of keys.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { delegateRole } from '../../../src/publisher/teams/delegate.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { delegateTo, makeTeam, signByTeam } from '../../kit/repository/delegated-repository.js';
import { publishedHost } from '../../kit/repository/published-host.js';
import { changeOptions } from '../../kit/repository/sample-repository.js';

const bundles = { bundles: [{ name: 'dns-edge' }, { name: 'access' }] };

describe('a host with a bundle that a team signs', longCase, () => {
  it('keeps its policy while the bundle is delegated, and accepts the releases of the team from then on', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    const { repository, host } = published;
    const serials = async () =>
      (await host.pull()).bundles.map(({ outcome, toSerial }) => [outcome, toSerial]);
    await repository.publish({ policy: 'one' });
    await repository.publish({ rule: 'one' }, { bundle: 'access' });
    assert.deepEqual(await serials(), [
      ['activated', 1],
      ['activated', 1],
    ]);
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team, { shouldHandOver: true });
    const between = (await host.pull()).bundles.map(({ outcome, problem }) => [outcome, problem?.code]);
    assert.deepEqual(between, [
      ['failed', 'METADATA_MIX'],
      ['unchanged', undefined],
    ]);
    assert.equal(host.read('dns-edge/policy'), 'one');
    await signByTeam(repository, team);
    await repository.refresh();
    assert.deepEqual(await serials(), [
      ['unchanged', 1],
      ['unchanged', 1],
    ]);
    await repository.publish({ policy: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.deepEqual(await serials(), [
      ['activated', 2],
      ['unchanged', 1],
    ]);
    const options = changeOptions(repository, { keys: team.keys });
    await withdrawRelease({ bundle: 'dns-edge', serials: [2], reason: '' }, options);
    await repository.refresh();
    assert.deepEqual(await serials(), [
      ['activated', 1],
      ['unchanged', 1],
    ]);
    assert.equal(host.read('dns-edge/policy'), 'one');
  });

  it('takes a serial below that of a former key only where that is withdrawn too', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    const { repository, host } = published;
    const pulled = async () => (await host.pull()).bundles[0]?.toSerial;
    await repository.publish({ policy: 'one' });
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team, { shouldHandOver: true });
    await signByTeam(repository, team);
    await repository.publish({ policy: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.equal(await pulled(), 2);
    const renewed = makeTeam(dir, 'dns-team', 'renewed');
    await delegateTo(repository, renewed);
    // No file of the new key ever lists serial 2.
    await repository.publish({ policy: 'three' }, { keys: renewed.keys });
    await repository.refresh();
    assert.equal(await pulled(), 3);
    const options = changeOptions(repository, { keys: renewed.keys });
    const withdraw = (serials: readonly number[]) =>
      withdrawRelease({ bundle: 'dns-edge', serials, reason: '' }, options);
    const error = await rejectsCode('RELEASE_REFUSED', withdraw([3]));
    assert.deepEqual(error.facts['standing'], [2]);
    assert.match(error.hint, /--serial 2/);
    await withdraw([2, 3]);
    await repository.refresh();
    assert.equal(await pulled(), 1);
  });

  it('keeps its policy while a role is removed, and accepts its releases after it returns with the same key', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    const { repository, host } = published;
    const pulled = async () => (await host.pull()).bundles[0];
    const team = makeTeam(dir, 'dns-team');
    await repository.publish({ policy: 'one' });
    await delegateTo(repository, team, { shouldHandOver: true });
    await signByTeam(repository, team);
    await repository.publish({ policy: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.equal((await pulled())?.toSerial, 2);
    await delegateRole({ role: team.role, shouldHandOver: true }, changeOptions(repository));
    assert.equal((await pulled())?.outcome, 'unchanged');
    await repository.publish({ policy: 'three' });
    assert.equal((await pulled())?.toSerial, 3);
    await delegateTo(repository, team, { shouldHandOver: true });
    // The earlier file lists serial 2 and is signed by the present key, but it is older for the host.
    const between = await pulled();
    assert.deepEqual([between?.outcome, host.read('dns-edge/policy')], ['rejected', 'three']);
    assert.equal(between?.problem?.code, 'SERIAL_ROLLBACK');
    await signByTeam(repository, team);
    await repository.refresh();
    assert.equal((await pulled())?.outcome, 'unchanged');
    await repository.publish({ policy: 'four' }, { keys: team.keys });
    await repository.refresh();
    assert.equal((await pulled())?.toSerial, 4);
  });

  it('refuses the releases of the replaced key of a team, and takes the other bundles', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    const { repository, host } = published;
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team);
    await repository.publish({ policy: 'one' }, { keys: team.keys });
    await repository.publish({ rule: 'one' }, { bundle: 'access' });
    assert.equal((await host.pull()).outcome, 'activated');
    const next = makeTeam(dir, 'dns-team', 'next');
    await delegateTo(repository, next);
    await repository.publish({ rule: 'two' }, { bundle: 'access' });
    const { bundles: results } = await host.pull();
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ['failed', 'activated'],
    );
    assert.equal(results[0]?.problem?.code, 'SIGNATURE_WRONG_KEY');
    assert.equal(host.read('dns-edge/policy'), 'one');
    await signByTeam(repository, next);
    await repository.publish({ policy: 'two' }, { keys: next.keys });
    await repository.refresh();
    assert.equal((await host.pull()).outcome, 'activated');
    assert.equal(host.read('dns-edge/policy'), 'two');
  });
});
