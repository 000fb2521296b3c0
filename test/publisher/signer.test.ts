import assert from 'node:assert/strict';
import { createPrivateKey, sign } from 'node:crypto';
import { describe, it } from 'node:test';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { keyId, verifySignature } from '../../src/core/signature-schemes.js';
import { newSeed } from '../../src/publisher/key-file.js';
import { createSigner, type Signer, signMetadata } from '../../src/publisher/signer.js';

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

describe('createSigner', () => {
  it('signs as OpenSSL does, byte for byte', () => {
    const seed = newSeed();
    const der = Buffer.concat([pkcs8Prefix, seed]);
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    const bytes = Uint8Array.from(Buffer.from('policy'));
    assert.equal(createSigner(seed).sign(bytes), sign(null, bytes, key).toString('hex'));
  });

  it('has the key id of its key', () => {
    const signer = createSigner(newSeed());
    assert.equal(signer.keyId, keyId(signer.key));
  });
});

describe('signMetadata', () => {
  it('gives canonical JSON with one signature of each signer over the signed part', () => {
    const signers = [createSigner(newSeed()), createSigner(newSeed())];
    const signed = { version: 1, _type: 'root', ä: ['"', null] };
    const bytes = signMetadata(signed, signers);
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
  });

  const honest = createSigner(newSeed());
  const dishonest: Readonly<Record<string, Signer>> = {
    'one flipped bit': { ...honest, sign: (bytes) => flip(honest.sign(bytes)) },
    'another key': { ...honest, sign: (bytes) => createSigner(newSeed()).sign(bytes) },
    'other bytes': { ...honest, sign: () => honest.sign(new Uint8Array(1)) },
    nothing: { ...honest, sign: () => '' },
  };
  for (const [name, signer] of Object.entries(dishonest)) {
    it(`uses no signature on which the two implementations disagree: ${name}`, () => {
      assert.throws(() => signMetadata({ a: 1 }, [signer]), { code: 'SIGNATURE_DISAGREEMENT' });
    });
  }
});

function flip(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  bytes.writeUInt8(bytes.readUInt8(3) ^ 1, 3);
  return bytes.toString('hex');
}
