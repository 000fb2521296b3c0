// A list of releases with errors, and a repository with files of other publishers.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import { encodeReleaseInfo } from '../../../../src/core/release/release.js';
import { readOfferedReleases } from '../../../../src/fleet/repositories/read-offered-releases.js';
import type { SignedTarget } from '../../../../src/trust/signed-target.js';

type Client = Parameters<typeof readOfferedReleases>[0];

const digest = digestFromHex('a'.repeat(64)) as Digest;

function targetAt(path: string): SignedTarget {
  const [bundle = '', channel = ''] = path.replace('.tar.br', '').split('/');
  const release = {
    ...{ bundle, channel, serial: 1, revision: 'r1', createdAtMs: 1_700_000_000_000 },
    ...{ manifest: { digest, length: 10 }, withdrawn: [] },
  };
  const file = {
    length: 5,
    hashes: { sha256: 'a'.repeat(64) },
    custom: { writ: encodeReleaseInfo(release) },
  };
  const vouchedBy = { role: 'targets', bytes: Buffer.alloc(0), rootVersion: 1, chain: [] };
  return { path, file, archivePath: path, length: 5, vouchedBy, release, digest };
}

const known = [
  { bundle: 'dns', channel: 'stable' },
  { bundle: 'gone', channel: 'stable' },
];
const { signal } = new AbortController();

function clientOf(
  list: Client['list'],
  target: Client['target'] = () => assert.fail('no channel is asked for'),
) {
  return { list, target };
}

describe('readOfferedReleases', () => {
  it('skips files without a bundle and a channel in their path', async () => {
    const paths = ['dns/stable.tar.br', 'No Bundle/stable.tar.br', 'dns/No Channel.tar.br', 'dns/stable.zip'];
    const files = paths.map(targetAt);
    const offer = await readOfferedReleases(
      clientOf(async () => ({ files }) as never),
      known,
      signal,
    );
    assert.deepEqual([offer.entries.map(({ bundle }) => bundle), offer.unreadChannels], [['dns'], []]);
  });

  it('reads the known channels one by one when the list fails, unless the signal is aborted', async () => {
    const trouble = new WritError('METADATA_EXPIRED', 'a role of a team has expired');
    const client = clientOf(
      () => Promise.reject(trouble),
      async (bundle) => (bundle === 'dns' ? targetAt('dns/stable.tar.br') : undefined),
    );
    const offer = await readOfferedReleases(client, known, signal);
    assert.deepEqual([offer.entries.length, offer.unreadChannels, offer.firstError], [1, [], trouble]);
    await assert.rejects(readOfferedReleases(client, known, AbortSignal.abort()), trouble);
    const mistake = new TypeError('a mistake of Writ');
    await assert.rejects(
      readOfferedReleases({ ...client, list: () => Promise.reject(mistake) }, known, signal),
      mistake,
    );
  });
});
