// Which releases the kept metadata of a repository lists: of a bundle, of a channel, and with which withdrawals.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lastReleases, releaseHistory } from '../../../../src/publisher/release/release-history.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { isInForce, type ListedRelease } from '../../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { listSerials } from '../../../../src/publisher/repository/unverified-metadata.js';
import { readRoleValidityMs } from '../../../../src/publisher/signing/sign-role.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { stateOf } from '../../../kit/repository/delegating.js';
import { changeOptions, sampleRepository } from '../../../kit/repository/sample-repository.js';

const textOf = ({ release }: ListedRelease): string =>
  `${release.channel} ${release.serial} without ${release.withdrawn.join()}`;

describe('the releases that a repository has listed', () => {
  it('are those of the bundle and the channel, each with its newest list of withdrawals', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' });
    await repository.publish({ file: 'two' }, { channel: 'canary' });
    await repository.publish({ file: 'three' });
    await repository.publish({ file: 'other' }, { bundle: 'web', afterSerial: 8 });
    await withdrawRelease(
      { bundle: 'dns-edge', serials: [1], channel: 'stable', reason: '' },
      changeOptions(repository),
    );
    const state = stateOf(repository);
    assert.deepEqual(releaseHistory(state, 'dns-edge').map(textOf), [
      'stable 3 without 1',
      'canary 2 without ',
      'stable 1 without ',
    ]);
    const last = lastReleases(state, { bundle: 'dns-edge', channel: 'stable', count: 5 });
    assert.deepEqual(last.map(textOf), ['stable 3 without 1', 'stable 1 without ']);
    const listed = (bundle: string, channel: string): number[] =>
      [...listSerials(layoutOf(repository.directory), { bundle, channel })].sort();
    assert.deepEqual(
      [listed('dns-edge', 'stable'), listed('dns-edge', 'canary'), listed('web', 'stable')],
      [[1, 3], [2], [9]],
    );
  });
});

describe('a hand-over', () => {
  it('counts until the role has signed a version after it', () => {
    const own = (version: number) => ({ signed: { version } }) as unknown as Parameters<typeof isInForce>[1];
    const given = { after: 3, targets: {} };
    assert.deepEqual(
      [undefined, own(3), own(4)].map((one) => isInForce(given, one)),
      [true, true, false],
    );
  });
});

describe('the validity period of a role', () => {
  it('is its own where it has one of a second at least, and never an own one of the targets', () => {
    using dir = tempDir();
    const { targets, live, ...state } = stateOf(sampleRepository(dir));
    const writ = { livesMs: { targets: 5000, team: 7000, hasty: 999, slow: 1000 } };
    const given = { ...state, live, targets: { ...targets, signed: { ...targets.signed, writ } } };
    const validityOf = (role: string): number => readRoleValidityMs(given, role);
    const common = validityOf('another');
    assert.deepEqual(['targets', 'team', 'hasty', 'slow', 'toString'].map(validityOf), [
      common,
      7000,
      common,
      1000,
      common,
    ]);
  });
});
