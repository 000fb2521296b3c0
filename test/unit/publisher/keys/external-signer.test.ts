// Signatures of a second program: real openssl with the three kinds of keys, and commands that lie, hang or fail.
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import { keyId, verifySignature } from '../../../../src/core/tuf/signature-schemes.js';
import type { MetadataKey } from '../../../../src/core/tuf/tuf-metadata.js';
import {
  createExternalSigner,
  type ExternalCommand,
} from '../../../../src/publisher/keys/external-signer.js';
import { newSeed } from '../../../../src/publisher/keys/key-file.js';
import { createSigner } from '../../../../src/publisher/keys/signer.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeOpensslKey, opensslKinds } from '../../../kit/programs/openssl-keys.js';
import { needs } from '../../../kit/programs/real-programs.js';
import type { KeyType } from '../../../kit/repository/key-pairs.js';

const openssl = needs('openssl', 'openssl');
const bytes = Uint8Array.from(Buffer.from('{"_type":"root"}'));
const stranger = createSigner(newSeed());

function command(text: string, given: Partial<ExternalCommand> = {}): ExternalCommand {
  return { command: text, env: process.env, serves: () => true, timeoutMs: 60_000, ...given };
}

function signWith(text: string, keys: readonly MetadataKey[], given: Partial<ExternalCommand> = {}) {
  return createExternalSigner(command(text, given), { role: 'root', keys }).sign(bytes);
}

describe('an external signer', openssl, () => {
  for (const kind of opensslKinds) {
    it(`signs with ${kind} of openssl, and is known by the key that its signature verifies under`, () => {
      return withKey(kind, async ({ key, signCommand }) => {
        const { keyid, sig } = await signWith(signCommand, [stranger.key, key]);
        assert.equal(keyid, keyId(key));
        assert.ok(verifySignature(key, bytes, sig));
      });
    });

    it(`may write the hex of ${kind}, with line breaks`, () => {
      return withKey(kind, async ({ key, signCommand }) => {
        const { sig } = await signWith(`${signCommand} | od -An -v -tx1`, [key]);
        assert.ok(verifySignature(key, bytes, sig));
      });
    });

    it(`may write the base64 of ${kind}, as key services do`, () => {
      return withKey(kind, async ({ key, signCommand }) => {
        for (const also of ['', " | tr '+/' '-_'"]) {
          const { sig } = await signWith(`${signCommand} | base64${also}`, [key]);
          assert.ok(verifySignature(key, bytes, sig));
        }
      });
    });
  }

  it('with a key of another role signs nothing', () => {
    return withKey('ed25519', async ({ signCommand }) => {
      await rejectsCode('SIGNER_WRONG', signWith(signCommand, [stranger.key]));
    });
  });

  it('with an answer that is not a signature signs nothing', async () => {
    for (const text of ['true', 'echo hello', 'cat', 'head -c 64 /dev/zero', 'yes ab | head -64']) {
      await rejectsCode('SIGNER_WRONG', signWith(text, [stranger.key]));
    }
  });

  it('that fails, hangs, prints without end or does not exist is reported as that', async () => {
    const failing: readonly (readonly [string, Partial<ExternalCommand>?])[] = [
      ['echo "no device" >&2; exit 3'],
      ['sleep 30', { timeoutMs: 100 }],
      ['cat /dev/zero | head -c 100000'],
      ['/nowhere/signer'],
      ['kill -9 $$'],
    ];
    for (const [text, given] of failing) {
      await rejectsCode('SIGNER_FAILED', signWith(text, [stranger.key], given));
    }
    const error = await rejectsCode('SIGNER_FAILED', signWith('echo "no device" >&2; exit 3', []));
    assert.equal(error.facts['stderr'], 'no device');
  });

  it('ends when the person ends the command', async () => {
    const given = { signal: AbortSignal.abort() };
    await rejectsCode('INTERRUPTED', signWith('sleep 30', [stranger.key], given));
  });

  it('gets the role, the key ids and the bytes, and no passphrase of Writ', async () => {
    using dir = tempDir();
    const env = { ...process.env, OUT: dir.path, WRIT_PASSPHRASE: 'secret', MY_TOKEN: 'mine' };
    const text =
      'cat > "$OUT/stdin"; cat "$WRIT_SIGN_FILE" > "$OUT/file"; stat -c %a "$WRIT_SIGN_FILE" > "$OUT/mode"; ' +
      'echo "$WRIT_SIGN_ROLE $WRIT_SIGN_KEYIDS $MY_TOKEN [$WRIT_PASSPHRASE]" > "$OUT/words"; ' +
      'printf %s "$WRIT_SIGN_FILE" > "$OUT/path"';
    await rejectsCode('SIGNER_WRONG', signWith(text, [stranger.key], { env }));
    const wrote = (name: string): Buffer => readFileSync(dir.join(name));
    assert.deepEqual(wrote('stdin'), Buffer.from(bytes));
    assert.deepEqual(wrote('file'), Buffer.from(bytes));
    assert.equal(wrote('mode').toString(), '600\n');
    assert.equal(wrote('words').toString(), `root ${stranger.keyId} mine []\n`);
    assert.equal(existsSync(dirname(wrote('path').toString())), false);
  });

  it('can talk to the person while it waits', async () => {
    let heard = '';
    const onStderr = (text: string): void => {
      heard += text;
    };
    await rejectsCode('SIGNER_WRONG', signWith('echo "touch your key" >&2', [stranger.key], { onStderr }));
    assert.equal(heard, 'touch your key\n');
  });
});

type OpensslKey = ReturnType<typeof makeOpensslKey>;

async function withKey(kind: KeyType, act: (key: OpensslKey) => Promise<void>): Promise<void> {
  using dir = tempDir();
  const key = makeOpensslKey(dir, kind);
  createPublicKey(readFileSync(key.publicPath));
  await act(key);
}
