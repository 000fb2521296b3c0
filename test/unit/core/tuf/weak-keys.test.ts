import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, publicEncrypt, constants as rsa, sign } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  countValidSigners,
  keyId,
  publicKeyIdentity,
  verifySignature,
} from '../../../../src/core/tuf/signature-schemes.js';
import type { MetadataKey } from '../../../../src/core/tuf/tuf-metadata.js';
import { isWeakEd25519, isWeakRsaExponent } from '../../../../src/core/tuf/weak-keys.js';
import { makeKey } from '../../../kit/repository/repository-simulator.js';

/** The eight points of small order, each with both signs, and the ways to write them with y at or above the prime. */
const smallOrder: readonly string[] = [
  `${'00'.repeat(32)}`,
  `01${'00'.repeat(31)}`,
  `ec${'ff'.repeat(30)}7f`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
].flatMap((hex) => {
  const negative = Buffer.from(hex, 'hex');
  negative[31] = (negative[31] ?? 0) | 0x80;
  return [hex, negative.toString('hex')];
});

function ed25519(hex: string): MetadataKey {
  return { keytype: 'ed25519', scheme: 'ed25519', keyval: { public: hex } };
}

describe('an Ed25519 key of small order', () => {
  it('never counts as a signer, because its signatures need no secret', () => {
    for (const hex of smallOrder) {
      for (let message = 0; message < 32; message += 1) {
        // S = 0 and R = -kA: no secret is asked for, and one R in eight at the latest fits.
        const forged = smallOrder.map((r) => `${r}${'00'.repeat(32)}`);
        const bytes = Buffer.from(`policy ${message}`);
        assert.equal(
          forged.some((sig) => verifySignature(ed25519(hex), bytes, sig)),
          false,
          hex,
        );
      }
    }
  });

  it('does not count for a threshold, and is rejected by a publisher', () => {
    const honest = makeKey();
    const bytes = Buffer.from('policy');
    const weak = ed25519(`01${'00'.repeat(31)}`);
    const keys = { [honest.id]: honest.key, [keyId(weak)]: weak };
    const signatures = [
      { keyid: honest.id, sig: sign(null, bytes, honest.secret).toString('hex') },
      { keyid: keyId(weak), sig: `01${'00'.repeat(63)}` },
    ];
    const role = { keyids: Object.keys(keys), threshold: 2 };
    assert.equal(countValidSigners({ keys, role, signatures, signedBytes: bytes }), 1);
    assert.equal(publicKeyIdentity(weak), undefined);
  });

  it('is recognized by its number alone', () => {
    for (const hex of smallOrder) assert.equal(isWeakEd25519(Buffer.from(hex, 'hex')), true, hex);
    for (let times = 0; times < 20; times += 1) {
      assert.equal(isWeakEd25519(Buffer.from(makeKey().key.keyval.public, 'hex')), false);
    }
  });

  it('is rejected as a second encoding of a key is, which could count twice', () => {
    // y = 3 is a point of the curve, and so is what is written as the prime and 3.
    assert.equal(isWeakEd25519(Buffer.from(`f0${'ff'.repeat(30)}7f`, 'hex')), true);
    assert.equal(isWeakEd25519(Buffer.from(`03${'00'.repeat(31)}`, 'hex')), false);
  });
});

describe('an RSA key with the exponent 1', () => {
  it('never counts as a signer, because the padded digest alone would be a signature', () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const bytes = Buffer.from('policy');
    const options = { key: privateKey, padding: rsa.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
    const padded = publicEncrypt(
      { key: publicKey, padding: rsa.RSA_NO_PADDING },
      sign('sha256', bytes, options),
    );
    const jwk = { ...publicKey.export({ format: 'jwk' }), e: 'AQ' };
    const pem = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    const key = { keytype: 'rsa', scheme: 'rsassa-pss-sha256', keyval: { public: pem.toString() } };
    assert.equal(verifySignature(key, bytes, padded.toString('hex')), false);
    assert.equal(publicKeyIdentity(key), undefined);
  });

  it('is the only kind of weak exponent that is in use', () => {
    for (const exponent of [0n, 1n, 2n]) assert.equal(isWeakRsaExponent(exponent), true);
    for (const exponent of [3n, 65537n]) assert.equal(isWeakRsaExponent(exponent), false);
  });
});
