// Every role on keys of another program: the commit asks the devices, and the client of tuf-js, which shares no code
// with ours, follows the same chain of roots.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  createExternalSigner,
  type ExternalCommand,
} from '../../../../src/publisher/keys/external-signer.js';
import { readPublicKey } from '../../../../src/publisher/keys/public-key.js';
import { encodeProposal, parseProposal } from '../../../../src/publisher/root/proposal-file.js';
import { addSignatures, signingKeys } from '../../../../src/publisher/root/proposal-signatures.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { serveDirectory } from '../../../kit/net/serve-repository.js';
import { makeOpensslKey, type OpensslKey } from '../../../kit/programs/openssl-keys.js';
import { needs } from '../../../kit/programs/real-programs.js';
import { commit, noPassphrases, proposal, signedBy } from '../../../kit/repository/ceremony.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';
import { tufJsClient } from '../../../kit/trust/tuf-js-client.js';

function device({ signCommand }: OpensslKey, role: string): ExternalCommand {
  return { command: signCommand, serves: (one) => one === role, env: process.env, timeoutMs: 60_000 };
}

describe('a repository on the keys of devices', { ...needs('openssl', 'openssl'), ...longCase }, () => {
  it('is signed by them at the commit, and other clients follow', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const bootstrapRoot = readFileSync(repository.rootPath);
    await repository.publish({ a: 'a' });
    const root = (['ed25519', 'ecdsa', 'rsa'] as const).map((kind) =>
      makeOpensslKey(dir, kind, `root-${kind}`),
    );
    const targets = makeOpensslKey(dir, 'ecdsa', 'targets');
    const snapshot = makeOpensslKey(dir, 'rsa', 'snapshot');
    const timestamp = makeOpensslKey(dir, 'ed25519', 'timestamp');
    const keys = (...devices: OpensslKey[]) => devices.map(({ publicPath }) => readPublicKey(publicPath));
    const replace = [
      { role: 'root' as const, keys: keys(...root) },
      { role: 'targets' as const, keys: keys(targets) },
      { role: 'snapshot' as const, keys: keys(snapshot) },
      { role: 'timestamp' as const, keys: keys(timestamp) },
    ];
    const external = [
      device(targets, 'targets'),
      device(snapshot, 'snapshot'),
      device(timestamp, 'timestamp'),
    ];
    const hand = { path: repository.keys, passphrases: noPassphrases, external };
    const made = proposal(repository, { replace }, { danger: 'accepted' });
    const byOld = await signedBy(repository, made, ['root-1.key', 'root-2.key']);
    const both = { base: made.base, proposal: byOld };
    const role = { role: 'root', keys: [...signingKeys(both).values()] };
    const signers = root.slice(1).map((key) => createExternalSigner(device(key, 'root'), role));
    const { proposal: complete } = await addSignatures(both, signers);
    const mailed = parseProposal(encodeProposal(complete));
    const { signed } = await commit(repository, mailed, { keys: hand });
    assert.deepEqual(signed, { targets: 3, snapshot: 1003, timestamp: 3 });

    await using server = await serveDirectory(repository.directory, () => false);
    const client = tufJsClient({
      directory: dir.join('tuf-js'),
      bootstrapRoot,
      url: server.url,
      nowMs: repository.clock.nowMs(),
    });
    await client.refresh();
    const versions = ['root', 'targets', 'snapshot', 'timestamp'].map((name) => client.version(name));
    assert.deepEqual(versions, [2, 3, 1003, 3]);
    assert.ok((await client.download('dns-edge/stable.tar.br')) !== undefined);
  });
});
