// A delegated role over time: removed and back, with other keys, with files that nobody took live, or lost.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { delegateRole } from '../../../../src/publisher/teams/delegate.js';
import { createRepositoryView } from '../../../../src/server/resign/repository-view.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import {
  delegatedRepository,
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../../kit/repository/delegated-repository.js';
import { dayMs, live } from '../../../kit/repository/delegating.js';
import { changeOptions, metadataPath, sampleRepository } from '../../../kit/repository/sample-repository.js';

describe('a role that was removed and comes back', longCase, () => {
  it('does not bring its old releases back: it continues from the releases that are handed over now', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    await delegateRole({ role: 'dns-team', shouldHandOver: true }, changeOptions(repository));
    await repository.publish({ file: 'two' });
    await delegateTo(repository, team, { shouldHandOver: true });
    await signByTeam(repository, team);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
    assert.equal((await repository.publish({ file: 'three' }, { keys: team.keys })).release.serial, 3);
  });
});

describe('a change of keys', longCase, () => {
  it('ends what the old key may do; the new one signs what stood', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const next = makeTeam(dir, 'dns-team', 'next');
    const changed = await delegateTo(repository, next);
    assert.ok(changed.kind === 'live' && changed.waitsForRole);
    assert.deepEqual(live(repository), []);
    await rejectsCode('KEYS_MISSING', repository.publish({ file: 'two' }, { keys: team.keys }));
    await signByTeam(repository, next);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
    assert.equal((await repository.publish({ file: 'two' }, { keys: next.keys })).release.serial, 2);
  });

  it('that leaves enough of the old ones needs no signature of the team', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const second = makeTeam(dir, 'dns-team', 'second');
    const changed = await delegateTo(repository, team, { keys: [team.publicKey, second.publicKey] });
    assert.ok(changed.kind === 'live' && !changed.waitsForRole);
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
  });
});

describe('a file that a team has signed and that is not published', longCase, () => {
  it('is seen by the server, the first file of a role too', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    const view = createRepositoryView(repository.directory);
    assert.deepEqual(view.read().pending, []);
    await repository.publish({ file: 'one' }, { keys: team.keys });
    assert.deepEqual(view.read().pending, ['1.dns-team.json']);
    await repository.refresh();
    fs.writeFileSync(metadataPath(repository, '9.strangers.json'), '{}');
    assert.deepEqual(view.read().pending, []);
  });

  it('harms no other team when its archive is missing, it has expired, or a stranger signed it', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    const team = makeTeam(dir, 'dns-team');
    const other = makeTeam(dir, 'access-team');
    await delegateTo(repository, team, { validityMs: dayMs });
    await delegateTo(repository, other, { paths: ['access/*'] });
    await repository.publish({ file: 'one' }, { keys: team.keys });
    fs.rmSync(`${repository.directory}/targets/dns-edge`, { recursive: true });
    await repository.publish({ rule: '' }, { bundle: 'access', keys: other.keys });
    const first = await repository.refresh();
    assert.deepEqual(
      [first.wentLive, first.ignored.map(({ name }) => name)],
      [[{ role: 'access-team', version: 1 }], ['1.dns-team.json']],
    );
    await rejectsCode('REPOSITORY_INVALID', repository.refresh());
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await clock.advance(2 * dayMs);
    assert.deepEqual((await repository.refresh()).wentLive, []);
    fs.copyFileSync(
      metadataPath(repository, '1.access-team.json'),
      metadataPath(repository, '9.dns-team.json'),
    );
    const third = await repository.publish({ rule: 'new' }, { bundle: 'access', keys: other.keys });
    assert.equal(third.release.serial, 2);
    const last = await repository.refresh();
    assert.deepEqual(last.wentLive, [{ role: 'access-team', version: 2 }]);
    assert.ok(last.ignored.some(({ name }) => name === '9.dns-team.json'));
  });

  it('cannot bring back what was withdrawn: an older file of the team under a newer name is no new one', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    await repository.publish({ file: 'one' }, { keys: team.keys });
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    fs.copyFileSync(metadataPath(repository, '1.dns-team.json'), metadataPath(repository, '3.dns-team.json'));
    await rejectsCode('REPOSITORY_INVALID', repository.refresh());
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
  });
});

describe('a team’s file that is lost', longCase, () => {
  it('is not built on: its serials must not be used again', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    fs.rmSync(metadataPath(repository, '1.dns-team.json'));
    await rejectsCode('REPOSITORY_INVALID', repository.publish({ file: 'two' }, { keys: team.keys }));
  });
});
