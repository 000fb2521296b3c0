// Which files of a directory are opened for a role: those named for it first, and each key once.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import {
  hasAvailableKeys,
  openKeysOf,
  type SigningAuthority,
} from '../../../../src/publisher/keys/key-directory.js';
import { createKeyFile, newSeed } from '../../../../src/publisher/keys/key-file.js';
import { createSigner } from '../../../../src/publisher/keys/signer.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const passphrases = { ask: async () => undefined };

/** Makes key files with these names, of which the role has all. */
function holder(dir: TempDir, name: string, files: readonly string[], threshold = 1): SigningAuthority {
  const signers = files.map((file) => {
    const seed = newSeed();
    createKeyFile({ path: dir.join(file), seed, durableFs: createDurableFs() });
    return createSigner(seed);
  });
  const keys = Object.fromEntries(signers.map(({ keyId, key }) => [keyId, key]));
  return { name, keys, role: { keyids: Object.keys(keys), threshold } };
}

describe('the keys of a role', () => {
  for (const file of ['targets.key', 'targets-1.key']) {
    it(`are unreadable when ${file} is damaged, although the role needs no other`, async () => {
      using dir = tempDir();
      const role = holder(dir, 'targets', ['deploy.key']);
      fs.writeFileSync(dir.join(file), '{}');
      await rejectsCode('KEY_UNREADABLE', openKeysOf({ path: dir.path, passphrases }, role));
    });
  }

  it('are found in a file with any other name, and a damaged one of no role is left out', async () => {
    using dir = tempDir();
    const role = holder(dir, 'targets', ['deploy.key']);
    fs.writeFileSync(dir.join('another.key'), '{}');
    assert.equal((await openKeysOf({ path: dir.path, passphrases }, role))?.length, 1);
  });

  it('are not taken from a file that is named for another role', async () => {
    using dir = tempDir();
    const role = holder(dir, 'targets', ['snapshot.key']);
    assert.equal(await openKeysOf({ path: dir.path, passphrases }, role), undefined);
  });

  it('count once each: a file that is named for its team is not found again', () => {
    using dir = tempDir();
    const role = holder(dir, 'edge', ['edge.key', 'other.pub']);
    const needsBoth = { ...role, role: { ...role.role, threshold: 2 } };
    assert.equal(hasAvailableKeys({ path: dir.path, passphrases }, role), true);
    assert.equal(hasAvailableKeys({ path: dir.path, passphrases }, needsBoth), false);
  });

  it('are requested from a command only where no file has them', async () => {
    using dir = tempDir();
    const role = holder(dir, 'targets', ['targets.key', 'device.pem'], 2);
    const command = { command: 'sign', serves: () => true, env: {}, timeoutMs: 1 };
    const [, external] = (await openKeysOf({ path: dir.path, passphrases, external: [command] }, role)) ?? [];
    assert.equal(external?.keys.length, 1);
  });
});
