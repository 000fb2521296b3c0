// A waiting release that a stolen key signed: no command of the publisher takes it over, unless the operator asks for it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { parseEnvelope } from '../../../../src/core/tuf/tuf-metadata.js';
import { openKey } from '../../../../src/publisher/keys/key-directory.js';
import { readKeyFile } from '../../../../src/publisher/keys/key-file.js';
import { signMetadataNow } from '../../../../src/publisher/keys/signer.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { delegateRole, previewDelegation } from '../../../../src/publisher/teams/delegate.js';
import { readRepositoryLog } from '../../../../src/publisher/upkeep/repository-log.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import {
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../../kit/repository/delegated-repository.js';
import { live } from '../../../kit/repository/delegating.js';
import {
  changeOptions,
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';

/** @returns a repository where serial 1 is published and serial 2, signed by the stolen key, waits; and the new key of the team */
async function stolenKey(dir: TempDir) {
  const { repository, team } = await publishedByTeam(dir);
  await repository.publish({ file: 'of a thief' }, { keys: team.keys, revision: 'stolen' });
  return { repository, stolen: team, team: makeTeam(dir, 'dns-team', 'next') };
}

const texts = (releases: readonly { release: { bundle: string; serial: number } }[]): string[] =>
  releases.map(({ release }) => `${release.bundle} ${release.serial}`);

async function signAndRefresh(repository: SampleRepository, team: ReturnType<typeof makeTeam>) {
  const signed = await signByTeam(repository, team);
  return { signed, refreshed: await repository.refresh() };
}

describe('a waiting release of a stolen team key', () => {
  it('is left out by the key change, and by the signature of the new key', async () => {
    using dir = tempDir();
    const { repository, team } = await stolenKey(dir);
    const changed = await delegateTo(repository, team);
    assert.ok(changed.kind !== 'nothing-new' && changed.plan !== undefined);
    assert.deepEqual(texts(changed.plan.leftOut), ['dns-edge 2']);
    assert.deepEqual(texts(changed.plan.handedOver), ['dns-edge 1']);
    const { signed, refreshed } = await signAndRefresh(repository, team);
    assert.deepEqual(
      signed.leftOut.map(({ name }) => name),
      ['2.dns-team.json'],
    );
    assert.deepEqual(
      signed.listed.map(({ release, isLive }) => [release.serial, isLive]),
      [[1, false]],
    );
    assert.deepEqual(texts(refreshed.newReleases), ['dns-edge 1']);
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
  });

  it('is left out where the key change waits for the online keys too', longCase, async () => {
    using dir = tempDir();
    const { repository, team } = await stolenKey(dir);
    const request = { role: 'dns-team', shouldHandOver: false, change: { keys: [team.publicKey] } } as const;
    const keys = someKeys(dir, repository, 'targets.key', 'root.json');
    const changed = await delegateRole(request, changeOptions(repository, { keys }));
    assert.equal(changed.kind, 'waiting');
    await signAndRefresh(repository, team);
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
  });

  it('is left out where the threshold grows beyond its signers', async () => {
    using dir = tempDir();
    const { repository, stolen, team } = await stolenKey(dir);
    const change = { keys: [stolen.publicKey, team.publicKey], threshold: 2 };
    const request = { role: 'dns-team', shouldHandOver: false, change } as const;
    assert.deepEqual(texts(previewDelegation(request, changeOptions(repository))?.leftOut ?? []), [
      'dns-edge 2',
    ]);
  });

  it('is left out by the key change after a hand-over that contained it', async () => {
    using dir = tempDir();
    const { repository, stolen, team } = await stolenKey(dir);
    // Without the online keys, so that the release of the thief goes on waiting.
    const keys = someKeys(dir, repository, 'targets.key', 'root.json');
    await repository.publish({ rule: '' }, { bundle: 'access', keys });
    const paths = ['dns-*/*', 'access/*'];
    await delegateTo(repository, stolen, { paths, shouldHandOver: true, keysDirectory: keys });
    await delegateTo(repository, team, { paths, keysDirectory: keys });
    await signAndRefresh(repository, team);
    assert.deepEqual(live(repository), ['access 1 dns-team', 'dns-edge 1 dns-team']);
  });

  it('does not end a hand-over: the key change hands the same releases over again', async () => {
    using dir = tempDir();
    const { repository, team: stolen } = await publishedByTeam(dir);
    await repository.publish({ rule: '' }, { bundle: 'access' });
    const paths = ['dns-*/*', 'access/*'];
    await delegateTo(repository, stolen, { paths, shouldHandOver: true });
    await repository.publish({ file: 'of a thief' }, { keys: stolen.keys });
    const keys = someKeys(dir, repository, 'targets.key', 'root.json');
    await repository.publish({ rule: '' }, { bundle: 'other', keys });
    const team = makeTeam(dir, 'dns-team', 'next');
    await delegateTo(repository, team, { paths, keysDirectory: keys });
    await signAndRefresh(repository, team);
    assert.deepEqual(live(repository), ['other 1 targets', 'access 1 dns-team', 'dns-edge 1 dns-team']);
  });

  it('is left out where the role is removed', longCase, async () => {
    using dir = tempDir();
    const { repository } = await stolenKey(dir);
    const removed = await delegateRole({ role: 'dns-team', shouldHandOver: true }, changeOptions(repository));
    assert.ok(removed.kind !== 'nothing-new');
    assert.deepEqual(texts(removed.newReleases), ['dns-edge 1']);
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });

  it('is handed over where the operator includes waiting releases', longCase, async () => {
    using dir = tempDir();
    const { repository } = await stolenKey(dir);
    const request = { role: 'dns-team', shouldHandOver: true, shouldIncludeWaiting: true } as const;
    const removed = await delegateRole(request, changeOptions(repository));
    assert.ok(removed.kind !== 'nothing-new' && removed.plan !== undefined);
    assert.deepEqual(
      removed.plan.returned.map(({ release, isLive }) => [release.serial, isLive]),
      [[2, false]],
    );
    assert.deepEqual(live(repository), ['dns-edge 2 targets']);
  });

  it('stays a waiting release of the team where its key is still trusted', longCase, async () => {
    using dir = tempDir();
    const { repository, stolen, team } = await stolenKey(dir);
    const keys = [stolen.publicKey, team.publicKey];
    const changed = await delegateTo(repository, team, { keys });
    assert.ok(changed.kind !== 'nothing-new' && changed.plan !== undefined);
    assert.deepEqual(texts(changed.plan.leftOut), []);
    assert.deepEqual(texts(changed.newReleases), ['dns-edge 2']);
  });
});

describe('a waiting release at a path that a trusted team gives back to the targets', () => {
  /** The path of the waiting release is no longer delegated. */
  async function withoutPath(dir: TempDir, shouldIncludeWaiting: boolean) {
    const { repository, team } = await publishedByTeam(dir);
    await repository.publish({ file: 'waits' }, { keys: team.keys });
    const change = { paths: ['acl-*/*'] };
    const request = { role: 'dns-team', shouldHandOver: true, shouldIncludeWaiting, change } as const;
    const changed = await delegateRole(request, changeOptions(repository));
    assert.ok(changed.kind === 'live' && changed.plan !== undefined);
    return { repository, team, plan: changed.plan };
  }

  it('is left out, and hosts keep the published release', async () => {
    using dir = tempDir();
    const { repository, team, plan } = await withoutPath(dir, false);
    assert.deepEqual(texts(plan.leftOut), ['dns-edge 2']);
    assert.deepEqual([texts(plan.returned), texts(plan.handedOver), plan.taken], [['dns-edge 1'], [], []]);
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
    await signAndRefresh(repository, team);
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });

  it('is returned where the operator includes waiting releases', longCase, async () => {
    using dir = tempDir();
    const { repository, plan } = await withoutPath(dir, true);
    assert.deepEqual(
      plan.returned.map(({ release, isLive }) => [release.serial, isLive]),
      [[2, false]],
    );
    assert.deepEqual(live(repository), ['dns-edge 2 targets']);
  });
});

describe('the withdrawal of a published release of a stolen team key', () => {
  /** Serial 1 is of the team, serial 2 of the thief; the new key of the team has signed serial 2. */
  async function replacedKey(dir: TempDir) {
    const { repository, team: stolen } = await publishedByTeam(dir);
    await repository.publish({ file: 'of a thief' }, { keys: stolen.keys });
    await repository.refresh();
    const team = makeTeam(dir, 'dns-team', 'next');
    await delegateTo(repository, team);
    await signAndRefresh(repository, team);
    const withdraw = (serials: readonly number[], to?: number) =>
      withdrawRelease(
        { bundle: 'dns-edge', serials, reason: '', to },
        changeOptions(repository, { keys: team.keys }),
      );
    return { repository, stolen, withdraw };
  }

  it('returns to the release of the replaced key that the operator names', async () => {
    using dir = tempDir();
    const { repository, withdraw } = await replacedKey(dir);
    const error = await rejectsCode('RELEASE_UNAVAILABLE', withdraw([2]));
    assert.match(error.hint, /^`--to 1` returns to a release that hosts saw before the key of dns-team was/);
    await withdraw([2], 1);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
  });

  it('returns to no release that the replaced key signed and no snapshot named', async () => {
    using dir = tempDir();
    const { repository, stolen, withdraw } = await replacedKey(dir);
    const metadata = `${repository.directory}/metadata`;
    const file = parseEnvelope(fs.readFileSync(`${metadata}/1.dns-team.json`), 'targets', 'dns-team');
    const [path = ''] = Object.keys(file.signed.targets);
    const signed = JSON.parse(JSON.stringify(file.signed));
    signed.targets[path].custom.writ.revision = 'forged';
    const seed = await openKey(readKeyFile(`${stolen.keys}/dns-team.key`) ?? assert.fail(), {
      ask: async () => undefined,
    });
    fs.writeFileSync(`${metadata}/1.dns-team.json`, signMetadataNow(signed, [seed]));
    await rejectsCode('RELEASE_UNKNOWN', withdraw([2], 1));
  });
});

describe('the log after a theft of a team key', () => {
  const actsOf = (repository: SampleRepository) =>
    readRepositoryLog({ repository: repository.directory, clock: repository.clock }).entries.flatMap(
      ({ role, version, act, neverLive }) => {
        if (act.kind === 're-sign') return [`${role}.${version} handed over ${act.handedOver}`];
        if (!('toSerial' in act)) return [];
        return [
          `${role}.${version} ${act.kind} ${act.toSerial}${neverLive === true ? ', never published' : ''}`,
        ];
      },
    );

  it('shows that the left out release was never published', async () => {
    using dir = tempDir();
    const { repository, team } = await stolenKey(dir);
    await delegateTo(repository, team);
    await signAndRefresh(repository, team);
    assert.deepEqual(actsOf(repository).sort(), [
      'dns-team.1 publish 1',
      'dns-team.2 publish 2, never published',
      'dns-team.3 handed over true',
    ]);
  });

  it('shows an included release as published by the role that signed it for hosts', async () => {
    using dir = tempDir();
    const { repository, team } = await stolenKey(dir);
    const change = { keys: [team.publicKey] };
    const request = { role: 'dns-team', shouldHandOver: false, change, shouldIncludeWaiting: true } as const;
    await delegateRole(request, changeOptions(repository));
    await signAndRefresh(repository, team);
    assert.deepEqual(actsOf(repository).sort(), [
      'dns-team.1 publish 1',
      'dns-team.2 publish 2',
      'dns-team.3 publish 2',
    ]);
  });

  it('shows a release as moved that returns to the targets from a role which never signed it', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    await repository.publish({ rule: '' }, { bundle: 'access' });
    await delegateTo(repository, team, { paths: ['dns-*/*', 'access/*'], shouldHandOver: true });
    await delegateRole({ role: 'dns-team', shouldHandOver: true }, changeOptions(repository));
    const acts = actsOf(repository).filter((text) => text.startsWith('targets.'));
    assert.deepEqual(acts.sort(), ['targets.3 publish 1', 'targets.5 move 1', 'targets.5 move 1']);
  });

  it('shows a release of a skipped version as published where the next version lists it', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    await repository.publish({ zone: '2' }, { keys: team.keys });
    await repository.publish({ zone: '3' }, { keys: team.keys });
    await repository.publish({ list: '1' }, { bundle: 'dns-acl', keys: team.keys });
    await repository.refresh();
    assert.deepEqual(actsOf(repository).sort(), [
      'dns-team.1 publish 1',
      'dns-team.2 publish 2, never published',
      'dns-team.3 publish 3',
      'dns-team.4 publish 1',
    ]);
  });

  const removeRole = async (repository: SampleRepository, shouldIncludeWaiting: boolean) => {
    const request = { role: 'dns-team', shouldHandOver: true, shouldIncludeWaiting } as const;
    await delegateRole(request, changeOptions(repository));
    return actsOf(repository).filter((text) => text.startsWith('targets.3'));
  };

  it('shows a waiting release of a removed role as never published', async () => {
    using dir = tempDir();
    const { repository } = await stolenKey(dir);
    await removeRole(repository, false);
    await repository.refresh();
    const { entries } = readRepositoryLog({ repository: repository.directory, clock: repository.clock });
    const ofTeam = entries.filter(({ role }) => role === 'dns-team');
    assert.deepEqual(
      ofTeam.map(({ version, waiting, neverLive }) => [version, waiting, neverLive]),
      [
        [2, undefined, true],
        [1, undefined, undefined],
      ],
    );
  });

  it('shows a published release as moved where the role is removed', longCase, async () => {
    using dir = tempDir();
    const { repository } = await stolenKey(dir);
    assert.deepEqual(await removeRole(repository, false), ['targets.3 move 1']);
  });

  it('shows a waiting release as published where the role is removed with it', async () => {
    using dir = tempDir();
    const { repository } = await stolenKey(dir);
    assert.deepEqual(await removeRole(repository, true), ['targets.3 publish 2']);
  });
});

describe('the withdrawal of a release by a role that a thief of the targets key delegated to', () => {
  it('names how the delegation ends, and succeeds after it', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' });
    const thief = makeTeam(dir, 'evil-team');
    await delegateTo(repository, thief, { shouldHandOver: true });
    await repository.publish({ file: 'of a thief' }, { keys: thief.keys });
    await repository.refresh();
    const withdraw = () =>
      withdrawRelease({ bundle: 'dns-edge', serials: [2], reason: '' }, changeOptions(repository));
    const error = await rejectsCode('KEYS_MISSING', withdraw());
    assert.match(error.hint, /`writ delegate evil-team --remove --hand-over` returns its bundles/);
    await delegateRole({ role: 'evil-team', shouldHandOver: true }, changeOptions(repository));
    await withdraw();
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });
});

describe('the withdrawal of a published release of a removed team', () => {
  it('returns to the release of the removed team that the operator names', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    await repository.publish({ file: 'of a thief' }, { keys: team.keys });
    await repository.refresh();
    await delegateRole({ role: team.role, shouldHandOver: true }, changeOptions(repository));
    const withdraw = (to?: number) =>
      withdrawRelease({ bundle: 'dns-edge', serials: [2], reason: '', to }, changeOptions(repository));
    const error = await rejectsCode('RELEASE_UNAVAILABLE', withdraw());
    assert.match(error.hint, /^`--to 1` returns to a release that hosts saw before/);
    await withdraw(1);
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });
});
