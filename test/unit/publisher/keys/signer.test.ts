import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, it } from 'node:test';
import nacl from 'tweetnacl';
import { canonicalBytes } from '../../../../src/core/text/canonical-json.js';
import { parseStrictJson } from '../../../../src/core/text/strict-json.js';
import { keyId, verifySignature } from '../../../../src/core/tuf/signature-schemes.js';
import type { MetadataSignature } from '../../../../src/core/tuf/tuf-metadata.js';
import { newSeed } from '../../../../src/publisher/keys/key-file.js';
import {
  createSigner,
  encodeMetadata,
  type KeySigner,
  signMetadata,
  signMetadataNow,
} from '../../../../src/publisher/keys/signer.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

describe('createSigner', () => {
  it('signs as OpenSSL does, byte for byte, at once and later', async () => {
    const seed = newSeed();
    const der = Buffer.concat([pkcs8Prefix, seed]);
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    const bytes = Uint8Array.from(Buffer.from('policy'));
    const signer = createSigner(seed);
    assert.equal(signer.signNow(bytes).sig, sign(null, bytes, key).toString('hex'));
    assert.deepEqual(await signer.sign(bytes), signer.signNow(bytes));
  });

  it('has the public key that tweetnacl derives', () => {
    const seed = newSeed();
    const { publicKey } = nacl.sign.keyPair.fromSeed(seed);
    assert.equal(createSigner(seed).key.keyval.public, Buffer.from(publicKey).toString('hex'));
  });

  it('ignores an expected public key of another seed', () => {
    const [seed, other] = [newSeed(), newSeed()];
    const signer = createSigner(seed);
    const { public: own } = signer.key.keyval;
    const bytes = new Uint8Array(1);
    for (const expected of [own, createSigner(other).key.keyval.public, 'zz', own.slice(2)]) {
      const signerWithExpected = createSigner(seed, expected);
      assert.deepEqual(signerWithExpected.key, signer.key, expected);
      assert.deepEqual(signerWithExpected.signNow(bytes), signer.signNow(bytes), expected);
    }
  });

  it('has the key id of its key', () => {
    const signer = createSigner(newSeed());
    assert.equal(signer.keyId, keyId(signer.key));
    assert.equal(signer.signNow(new Uint8Array(1)).keyid, signer.keyId);
  });
});

describe('signMetadata', () => {
  it('gives canonical JSON with one signature of each signer over the signed part', async () => {
    const signers = [createSigner(newSeed()), createSigner(newSeed())];
    const signed = { version: 1, _type: 'root', ä: ['"', null] };
    const bytes = await signMetadata(signed, signers);
    const file = JSON.parse(bytes.toString());
    assert.deepEqual(canonicalBytes(file), bytes);
    assert.deepEqual(file.signed, signed);
    assert.deepEqual(
      file.signatures.map((signature: { keyid: string }) => signature.keyid),
      signers.map((signer) => signer.keyId),
    );
    for (const [index, signer] of signers.entries()) {
      assert.ok(verifySignature(signer.key, canonicalBytes(signed), file.signatures[index].sig));
    }
    assert.deepEqual(signMetadataNow(signed, signers), bytes);
  });

  const honest = createSigner(newSeed());
  const other = createSigner(newSeed());
  const dishonest: Readonly<Record<string, (bytes: Uint8Array) => MetadataSignature>> = {
    'one flipped bit': (bytes) => ({ keyid: honest.keyId, sig: flip(honest.signNow(bytes).sig) }),
    'another key': (bytes) => ({ keyid: honest.keyId, sig: other.signNow(bytes).sig }),
    'another key under its own name': (bytes) => other.signNow(bytes),
    'other bytes': () => honest.signNow(new Uint8Array(1)),
    nothing: () => ({ keyid: honest.keyId, sig: '' }),
  };
  for (const [name, signNow] of Object.entries(dishonest)) {
    it(`uses no signature on which the two implementations disagree: ${name}`, async () => {
      const signer: KeySigner = { ...honest, signNow, sign: async (bytes) => signNow(bytes) };
      await rejectsCode('SIGNATURE_DISAGREEMENT', signMetadata({ a: 1 }, [signer]));
      throwsCode('SIGNATURE_DISAGREEMENT', () => signMetadataNow({ a: 1 }, [signer]));
    });
  }

  it('does not count one key as two signers', async () => {
    await rejectsCode('KEYS_MISSING', signMetadata({ a: 1 }, [honest, other, honest]));
  });
});

describe('encodeMetadata', () => {
  it('writes the line breaks of a PEM key so that a parser takes them back', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const pem = publicKey.export({ type: 'spki', format: 'pem' });
    const signed = { keyval: { public: pem } };
    const read = parseStrictJson(encodeMetadata({ signatures: [], signed }));
    assert.ok(read.kind === 'value');
    assert.equal(JSON.stringify(read.value), JSON.stringify({ signatures: [], signed }));
  });
});

function flip(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  bytes.writeUInt8(bytes.readUInt8(3) ^ 1, 3);
  return bytes.toString('hex');
}
