import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, constants as rsa, sign } from 'node:crypto';
import { describe, it } from 'node:test';
import { countValidSigners, keyId, verifySignature } from '../../../../src/core/tuf/signature-schemes.js';
import type { MetadataKey } from '../../../../src/core/tuf/tuf-metadata.js';
import { makeKey } from '../../../kit/repository/repository-simulator.js';

const bytes = Buffer.from('what is signed');
const other = Buffer.from('what is signeD');

function pemKey(publicKey: KeyObject, keytype: string, scheme: string): MetadataKey {
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return { keytype, scheme, keyval: { public: pem } };
}

describe('verifySignature', () => {
  it('verifies Ed25519 keys written as hex', () => {
    const { key, secret } = makeKey();
    const sig = sign(null, bytes, secret).toString('hex');
    assert.equal(verifySignature(key, bytes, sig), true);
    assert.equal(verifySignature(key, other, sig), false);
  });

  it('agrees with the first test vector of RFC 8032', () => {
    const publicHex = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
    const sig =
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155' +
      '5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b';
    const key = { keytype: 'ed25519', scheme: 'ed25519', keyval: { public: publicHex } };
    assert.equal(verifySignature(key, Buffer.alloc(0), sig), true);
  });

  it('rejects the second form of an Ed25519 signature with S + L', () => {
    const { key, secret } = makeKey();
    const signature = sign(null, bytes, secret);
    const order = (1n << 252n) + 27742317777372353535851937790883648493n;
    const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order;
    const twin = Buffer.concat([
      signature.subarray(0, 32),
      Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse(),
    ]);
    assert.equal(verifySignature(key, bytes, twin.toString('hex')), false);
  });

  it('verifies ECDSA P-256 keys under both names of the key type, and no other curve', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const sig = sign('sha256', bytes, privateKey).toString('hex');
    for (const keytype of ['ecdsa', 'ecdsa-sha2-nistp256']) {
      const key = pemKey(publicKey, keytype, 'ecdsa-sha2-nistp256');
      assert.equal(verifySignature(key, bytes, sig), true);
      assert.equal(verifySignature(key, other, sig), false);
    }
    const wide = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
    const wideKey = pemKey(wide.publicKey, 'ecdsa', 'ecdsa-sha2-nistp256');
    assert.equal(
      verifySignature(wideKey, bytes, sign('sha256', bytes, wide.privateKey).toString('hex')),
      false,
    );
  });

  it('verifies RSA-PSS keys of 2048 bits and more', () => {
    const signPss = (key: KeyObject): string =>
      sign('sha256', bytes, { key, padding: rsa.RSA_PKCS1_PSS_PADDING, saltLength: 32 }).toString('hex');
    const good = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const key = pemKey(good.publicKey, 'rsa', 'rsassa-pss-sha256');
    assert.equal(verifySignature(key, bytes, signPss(good.privateKey)), true);
    assert.equal(verifySignature(key, other, signPss(good.privateKey)), false);
    const pkcs1 = sign('sha256', bytes, good.privateKey).toString('hex');
    assert.equal(verifySignature(key, bytes, pkcs1), false);
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const smallKey = pemKey(small.publicKey, 'rsa', 'rsassa-pss-sha256');
    assert.equal(verifySignature(smallKey, bytes, signPss(small.privateKey)), false);
  });

  it('never throws, and rejects invalid keys and signatures', () => {
    const { key, secret } = makeKey();
    const sig = sign(null, bytes, secret).toString('hex');
    for (const wrong of ['', 'zz', sig.slice(2), `${sig}00`, sig.slice(1), `${sig}\n`]) {
      assert.equal(verifySignature(key, bytes, wrong), false);
    }
    const pem = pemKey(generateKeyPairSync('ed25519').publicKey, 'rsa', 'rsassa-pss-sha256');
    const privatePem = secret.export({ type: 'pkcs8', format: 'pem' }).toString();
    for (const wrong of [
      { ...key, scheme: 'rsassa-pss-sha256' },
      { ...key, keytype: 'rsa' },
      { ...key, keytype: 'unknown' },
      { ...key, keyval: { public: 'ab' } },
      {
        ...key,
        keytype: 'ecdsa',
        keyval: { public: '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----' },
      },
      { ...key, keytype: 'ecdsa', keyval: { public: privatePem } },
      { ...key, keytype: 'ecdsa', keyval: { public: `-----BEGIN PUBLIC KEY-----${'A'.repeat(9000)}` } },
      pem,
    ]) {
      assert.equal(verifySignature(wrong, bytes, sig), false);
    }
  });
});

describe('countValidSigners', () => {
  const signers = [makeKey(), makeKey(), makeKey()];
  const keys = Object.fromEntries(signers.map(({ id, key }) => [id, key]));
  const keyids = signers.map(({ id }) => id);
  const signatures = signers.map(({ id, secret }) => ({
    keyid: id,
    sig: sign(null, bytes, secret).toString('hex'),
  }));
  const count = (changes: Partial<Parameters<typeof countValidSigners>[0]>): number =>
    countValidSigners({ keys, role: { keyids, threshold: 2 }, signatures, signedBytes: bytes, ...changes });

  it('counts valid signatures by keys of the role, and ignores all others', () => {
    assert.equal(count({}), 3);
    assert.equal(count({ role: { keyids: keyids.slice(1), threshold: 1 } }), 2);
    const [first, ...rest] = signatures;
    assert.equal(count({ signatures: [{ ...first!, sig: '' }, ...rest] }), 2);
    assert.equal(count({ signatures: [{ ...first!, sig: rest[0]!.sig }, ...rest] }), 2);
    assert.equal(count({ signatures: [{ keyid: 'constructor', sig: '00' }] }), 0);
    assert.equal(count({ keys: {} }), 0);
    assert.equal(count({ signedBytes: other }), 0);
  });

  it('counts a key id that the role lists twice once', () => {
    assert.equal(count({ role: { keyids: [keyids[0]!, keyids[0]!], threshold: 2 } }), 1);
  });

  it('counts a public key under two key ids once', () => {
    const { key, id } = signers[0]!;
    const upper = { ...key, keyval: { public: key.keyval.public.toUpperCase() } };
    const twin = keyId(upper);
    assert.notEqual(twin, id);
    const twice = [signatures[0]!, { keyid: twin, sig: signatures[0]!.sig }];
    const listed = { keyids: [id, twin], threshold: 2 };
    assert.equal(count({ keys: { ...keys, [twin]: upper }, role: listed, signatures: twice }), 1);
  });

  it('never counts a key whose id is not its digest', () => {
    const { key } = signers[0]!;
    const id = 'ab'.repeat(32);
    const signature = { keyid: id, sig: signatures[0]!.sig };
    assert.equal(
      count({ keys: { [id]: key }, role: { keyids: [id], threshold: 1 }, signatures: [signature] }),
      0,
    );
  });

  it('accepts the id of a key with additional members, with or without them in the digest', () => {
    const { key, id } = signers[0]!;
    const more = { ...key, keyid_hash_algorithms: ['sha256', 'sha512'] };
    for (const listed of [id, keyId(more)]) {
      const signature = { keyid: listed, sig: signatures[0]!.sig };
      const role = { keyids: [listed], threshold: 1 };
      assert.equal(count({ keys: { [listed]: more }, role, signatures: [signature] }), 1);
    }
  });
});

describe('one key in several forms', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const sig = sign('sha256', bytes, privateKey).toString('hex');

  /** SubjectPublicKeyInfo of the same point, written with its x and the parity of its y. */
  function compressed(): MetadataKey {
    const der = publicKey.export({ type: 'spki', format: 'der' });
    const point = der.subarray(-64);
    const short = Buffer.concat([Buffer.from([2 + ((point[63] ?? 0) & 1)]), point.subarray(0, 32)]);
    const algorithm = der.subarray(2, 23);
    const bits = Buffer.concat([Buffer.from([0x03, short.length + 1, 0]), short]);
    const whole = Buffer.concat([Buffer.from([0x30, algorithm.length + bits.length]), algorithm, bits]);
    const pem = `-----BEGIN PUBLIC KEY-----\n${whole.toString('base64')}\n-----END PUBLIC KEY-----\n`;
    return { keytype: 'ecdsa', scheme: 'ecdsa-sha2-nistp256', keyval: { public: pem } };
  }

  it('is one signer: a point of a curve, compressed or not', () => {
    const keys = [pemKey(publicKey, 'ecdsa', 'ecdsa-sha2-nistp256'), compressed()];
    for (const key of keys) assert.equal(verifySignature(key, bytes, sig), true);
    const keyids = keys.map(keyId);
    assert.notEqual(keyids[0], keyids[1]);
    const listed = Object.fromEntries(keys.map((key, index) => [keyids[index]!, key]));
    const signatures = keyids.map((keyid) => ({ keyid, sig }));
    const role = { keyids, threshold: 2 };
    assert.equal(countValidSigners({ keys: listed, role, signatures, signedBytes: bytes }), 1);
  });

  it('is one signer: a PEM text with other line ends', () => {
    const key = pemKey(publicKey, 'ecdsa', 'ecdsa-sha2-nistp256');
    const other = { ...key, keyval: { public: key.keyval.public.replaceAll('\n', '\r\n') } };
    const keyids = [keyId(key), keyId(other)];
    const keys = { [keyids[0]!]: key, [keyids[1]!]: other };
    const signatures = keyids.map((keyid) => ({ keyid, sig }));
    const count = countValidSigners({ keys, role: { keyids, threshold: 2 }, signatures, signedBytes: bytes });
    assert.equal(count, 1);
  });

  it('accepts both ECDSA signatures that differ in the sign of s, and only valid DER', () => {
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const raw = sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' });
    const r = BigInt(`0x${raw.subarray(0, 32).toString('hex')}`);
    const s = BigInt(`0x${raw.subarray(32).toString('hex')}`);
    const key = pemKey(publicKey, 'ecdsa', 'ecdsa-sha2-nistp256');
    for (const one of [s, order - s]) assert.equal(verifySignature(key, bytes, derOf(r, one)), true);
    assert.equal(verifySignature(key, bytes, derOf(r, s + order)), false);
    assert.equal(verifySignature(key, bytes, `${derOf(r, s)}00`), false);
    assert.equal(verifySignature(key, bytes, raw.toString('hex')), false);
  });

  it('accepts RSA-PSS signatures with a salt of any length, as different signers write them', () => {
    const rsaPair = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const key = pemKey(rsaPair.publicKey, 'rsa', 'rsassa-pss-sha256');
    for (const saltLength of [32, 20, 0, rsa.RSA_PSS_SALTLEN_MAX_SIGN]) {
      const options = { key: rsaPair.privateKey, padding: rsa.RSA_PKCS1_PSS_PADDING, saltLength };
      assert.equal(verifySignature(key, bytes, sign('sha256', bytes, options).toString('hex')), true);
    }
  });
});

function derOf(...numbers: readonly bigint[]): string {
  const parts = numbers.map((number) => {
    const hex = number.toString(16);
    const even = hex.length % 2 === 0 ? hex : `0${hex}`;
    const positive = Number.parseInt(even.slice(0, 2), 16) > 127 ? `00${even}` : even;
    return `02${(positive.length / 2).toString(16).padStart(2, '0')}${positive}`;
  });
  const body = parts.join('');
  return `30${(body.length / 2).toString(16).padStart(2, '0')}${body}`;
}
