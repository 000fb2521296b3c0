// Public keys come by mail and from other programs: read exactly, bounded, and named by their own digest.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { keyId } from '../../../../src/core/tuf/signature-schemes.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { makeKey } from '../../../../src/publisher/keys/new-key.js';
import { encodePublicKey, publicPathOf, readPublicKey } from '../../../../src/publisher/keys/public-key.js';
import { metadataKey } from '../../../../src/publisher/keys/signer.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeOpensslKey, opensslKinds } from '../../../kit/programs/openssl-keys.js';
import { needs } from '../../../kit/programs/real-programs.js';

const durableFs = createDurableFs();

describe('a public key file', () => {
  it('is what a new key gives away: name, key and key id, and nothing of the secret', () => {
    using dir = tempDir();
    const signer = makeKey({ path: dir.join('a', 'keys', 'carol.key'), name: 'Carol M.', durableFs });
    const path = dir.join('a', 'keys', 'carol.pub');
    assert.equal(publicPathOf(dir.join('a', 'keys', 'carol.key')), path);
    assert.deepEqual(readPublicKey(path), { key: signer.key, keyId: signer.keyId, name: 'Carol M.' });
    const secret = JSON.parse(readFileSync(dir.join('a', 'keys', 'carol.key'), 'utf8')).secret;
    assert.ok(!readFileSync(path, 'utf8').includes(secret));
  });

  it('can be had of the key file too', () => {
    using dir = tempDir();
    const signer = makeKey({ path: dir.join('ben.key'), name: 'ben', durableFs });
    assert.equal(readPublicKey(dir.join('ben.key')).keyId, signer.keyId);
  });

  const key = metadataKey('ab'.repeat(32));
  const good = JSON.parse(encodePublicKey(key, 'anna'));
  const refused: Readonly<Record<string, string>> = {
    'no JSON': '{',
    'another format': JSON.stringify({ ...good, 'writ-pub': 2 }),
    'a key id of another key': JSON.stringify({ ...good, keyid: 'ab'.repeat(32) }),
    'a duplicate member': JSON.stringify(good).replace('{', '{"public":"00",'),
    'a key that is none': encodePublicKey(metadataKey('00'), 'anna'),
    'a scheme that never counts': encodePublicKey({ ...key, scheme: 'none' }, 'anna'),
    'the type of another key': encodePublicKey({ ...key, keytype: 'rsa' }, 'anna'),
    'no key': '{"writ-pub":1}',
    'too long': `"${'x'.repeat(20_000)}"`,
    'a broken PEM': '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n',
    'a curve of its own': pemOf(generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).publicKey),
    'a short modulus': pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey),
    'a key for something else': pemOf(generateKeyPairSync('x25519').publicKey),
  };
  for (const [name, text] of Object.entries(refused)) {
    it(`is refused: ${name}`, () => {
      using dir = tempDir();
      writeFileSync(dir.join('x.pub'), text);
      throwsCode('KEY_UNREADABLE', () => readPublicKey(dir.join('x.pub')));
    });
  }

  it('is refused when it is a FIFO, a directory or missing, without waiting', () => {
    using dir = tempDir();
    execFileSync('mkfifo', [dir.join('fifo.pub')]);
    for (const path of [dir.join('fifo.pub'), dir.path, dir.join('missing.pub')]) {
      throwsCode('KEY_UNREADABLE', () => readPublicKey(path));
    }
  });

  it('has a name that cannot drive a terminal, or the name of the file', () => {
    using dir = tempDir();
    writeFileSync(dir.join('dora.pub'), encodePublicKey(key, 'x\u001b[2J'));
    assert.equal(readPublicKey(dir.join('dora.pub')).name, 'dora');
  });
});

describe('a PEM public key of openssl', needs('openssl', 'openssl'), () => {
  for (const kind of opensslKinds) {
    it(`is read as TUF lists it: ${kind}`, () => {
      using dir = tempDir();
      const made = makeOpensslKey(dir, kind, 'device');
      assert.deepEqual(readPublicKey(made.publicPath), {
        key: made.key,
        keyId: keyId(made.key),
        name: 'device',
      });
    });
  }
});

function pemOf(key: ReturnType<typeof generateKeyPairSync>['publicKey']): string {
  return (key as unknown as { export(options: object): string }).export({ type: 'spki', format: 'pem' });
}
