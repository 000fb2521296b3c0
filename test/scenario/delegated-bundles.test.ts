// A team that signs its own bundles, as a host lives through it: hand-over, publish, withdrawal, a change of keys.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withdrawRelease } from '../../src/publisher/withdraw.js';
import { delegateTo, makeTeam, signByTeam } from '../support/delegated-repository.js';
import { publishedHost } from '../support/published-host.js';
import { changeOptions } from '../support/sample-repository.js';
import { tempDir } from '../support/temp-dir.js';

const bundles = { bundles: [{ name: 'dns-edge' }, { name: 'access' }] };

describe('a host whose bundle a team signs', () => {
  it('keeps its policy while the bundle changes hands, and follows the team from then on', async () => {
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
    await delegateTo(repository, team, { handOver: 'yes' });
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

  it('refuses what the old key of a team has signed, and takes the other bundles', async () => {
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
