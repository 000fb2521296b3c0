// What a fleet server makes of a list that it cannot have whole, and of files that are not of Writ.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import { encodeReleaseInfo } from '../../../../src/core/release/release.js';
import { readOffer } from '../../../../src/fleet/repositories/read-offer.js';
import type { SignedTarget } from '../../../../src/trust/signed-target.js';

type Client = Parameters<typeof readOffer>[0];

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

describe('readOffer', () => {
  it('leaves out files whose path names no bundle and channel of Writ', async () => {
    const paths = ['dns/stable.tar.br', 'No Bundle/stable.tar.br', 'dns/No Channel.tar.br', 'dns/stable.zip'];
    const files = paths.map(targetAt);
    const offer = await readOffer(
      clientOf(async () => ({ files }) as never),
      known,
      signal,
    );
    assert.deepEqual([offer.entries.map(({ bundle }) => bundle), offer.unread], [['dns'], []]);
  });

  it('asks for the known channels one by one where the list cannot be had, unless it is to end', async () => {
    const trouble = new WritError('METADATA_EXPIRED', 'a role of a team has expired');
    const client = clientOf(
      () => Promise.reject(trouble),
      async (bundle) => (bundle === 'dns' ? targetAt('dns/stable.tar.br') : undefined),
    );
    const offer = await readOffer(client, known, signal);
    assert.deepEqual([offer.entries.length, offer.unread, offer.trouble], [1, [], trouble]);
    await assert.rejects(readOffer(client, known, AbortSignal.abort()), trouble);
    const mistake = new TypeError('a mistake of Writ');
    await assert.rejects(
      readOffer({ ...client, list: () => Promise.reject(mistake) }, known, signal),
      mistake,
    );
  });
});
