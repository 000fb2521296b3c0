// Secrets in base64 and gzip, and private keys in DER, are found; public keys and certificates in the same forms are not. Samples
// are put together here: a scanner that reads this repository must not find them.
import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { maxScannedBytes, scanForSecrets } from '../../../../src/publisher/archive/secret-content.js';
import { longCase } from '../../../kit/assert/long-case.js';

function found(content: string | Buffer, secrets: 'all' | 'own' = 'all', chunkBytes = 1_048_576) {
  const scan = scanForSecrets(secrets);
  const bytes = Buffer.from(content as string);
  for (let at = 0; at < bytes.length; at += chunkBytes) scan.add(bytes.subarray(at, at + chunkBytes));
  return scan.found();
}

const base64 = (text: string | Buffer): string => Buffer.from(text as string).toString('base64');
const wrapped = (text: string | Buffer): string => base64(text).replace(/.{76}/g, '$&\r\n  ');
const token = `ghp_${'aB3'.repeat(12)}`;
const secret = `user: a\n# a comment that is long enough\ntoken: ${token}\n`;

type Form = Readonly<{
  format: 'der';
  type: 'pkcs8' | 'pkcs1' | 'sec1';
  cipher?: string;
  passphrase?: string;
}>;
const pkcs8: Form = { format: 'der', type: 'pkcs8' };
const encrypted: Form = { ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'a' };
const der = (key: KeyObject, form: Form): Buffer => key.export(form as never) as unknown as Buffer;

const keys: readonly (readonly [string, KeyObject, readonly Form[]])[] = [
  ['Ed25519', generateKeyPairSync('ed25519').privateKey, [pkcs8, encrypted]],
  ['X25519', generateKeyPairSync('x25519').privateKey, [pkcs8, encrypted]],
  ...(['P-256', 'P-384', 'P-521'] as const).map(
    (namedCurve) =>
      [
        namedCurve,
        generateKeyPairSync('ec', { namedCurve }).privateKey,
        [pkcs8, encrypted, { format: 'der', type: 'sec1' }],
      ] as const,
  ),
  [
    'RSA',
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
    [pkcs8, encrypted, { format: 'der', type: 'pkcs1' }],
  ],
];

describe('a private key without PEM', () => {
  for (const [name, key, forms] of keys)
    it(`of ${name} is found in base64 and in DER, and its public key is not`, () => {
      for (const form of forms) {
        const what = `${name} ${form.type} ${form.cipher ?? ''}`;
        const text = `# a key\n"secret": '${base64(der(key, form))}'\n`;
        assert.deepEqual(found(text), { line: 2, what: 'a private key in base64', isOwn: false }, what);
        assert.equal(found(wrapped(der(key, form)))?.what, 'a private key in base64', what);
        assert.equal(found(der(key, form))?.what, 'a private key in DER', what);
      }
      const publicKey = createPublicKey(key);
      const spki = publicKey.export({ format: 'der', type: 'spki' });
      assert.equal(found(`key: ${base64(spki)}\n`), undefined);
      assert.equal(found(spki), undefined);
      const pem = publicKey.export({ format: 'pem', type: 'spki' }) as string;
      for (const text of [pem, base64(pem), wrapped(pem)]) assert.equal(found(text), undefined);
      if (publicKey.asymmetricKeyType === 'rsa')
        assert.equal(found(base64(publicKey.export({ format: 'der', type: 'pkcs1' }))), undefined);
    });
});

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

describe('an RSA key', () => {
  for (const type of ['pkcs1', 'pkcs8'] as const)
    it(`in ${type} is an example while only its first line is shown, and a key with one character more`, () => {
      const pem = rsa.export({ format: 'pem', type }) as string;
      const [header, first = '', second = ''] = pem.split('\n');
      const example = `${header}\n${first}\n...\n${pem.trimEnd().split('\n').at(-1)}\n`;
      assert.equal(found(example), undefined);
      assert.equal(found(`key: ${first}${second.slice(0, 12)}\n`), undefined);
      assert.equal(found(`key: ${first}${second.slice(0, 16)}\n`)?.what, 'a private key in base64');
    });
});

describe('a private key in a binary file', () => {
  it('encrypted, is found in DER', () => {
    for (const [, key] of keys) assert.equal(found(der(key, encrypted))?.what, 'a private key in DER');
  });
});

/** The header of a packet, its version, time and algorithm, and 80 bytes. */
const packet = (header: string, algorithm: number): Buffer =>
  Buffer.from(`${header}04046b0cde${algorithm.toString(16).padStart(2, '0')}${'a1'.repeat(80)}`, 'hex');

describe('a private key of OpenPGP and GnuPG', () => {
  it('is found in each form of its packet with each algorithm, in base64 too', () => {
    for (const header of ['9458', '950058', 'c558', 'c5c058', 'c5ff00000058'])
      for (const algorithm of [1, 2, 3, 16, 17, 18, 19, 22]) {
        const what = 'an OpenPGP private key';
        assert.equal(found(packet(header, algorithm))?.what, what, `${header} ${algorithm}`);
        assert.equal(found(base64(packet(header, algorithm)))?.what, `${what} in base64`);
      }
  });

  it('is found in the canonical form of an expression', () => {
    for (const begin of ['(11:private-key(', '(21:protected-private-key('])
      assert.equal(found(Buffer.from(`${begin}3:ecc${'\0'.repeat(60)}`))?.what, 'a GnuPG private key');
  });

  it('is not seen in a public key, a signature, another version and an algorithm without keys', () => {
    for (const other of [packet('9858', 22), packet('c658', 22), packet('8858', 22), packet('9458', 8)])
      assert.equal(found(other), undefined);
    const version = packet('9458', 22);
    version[2] = 7;
    assert.equal(found(version), undefined);
    assert.equal(found(Buffer.from(`(10:public-key(3:ecc${'\0'.repeat(60)}`)), undefined);
  });
});

describe('a secret in an encoding', () => {
  it('is found in base64, plain and wrapped, with the line of its value', () => {
    const line = { line: 3, what: 'a GitHub token in base64', isOwn: false };
    for (const text of [base64(secret), base64(`x${secret}`), wrapped(`${'a'.repeat(500)}\n${secret}`)])
      assert.deepEqual(found(`kind: Secret\ndata:\n  a: ${text}\n`), line);
  });

  it('is found in gzip, in gzip and base64, and in base64 and gzip', () => {
    assert.equal(found(gzipSync(secret))?.what, 'a GitHub token in gzip');
    assert.equal(found(base64(gzipSync(secret)))?.what, 'a GitHub token in gzip and base64');
    assert.equal(found(gzipSync(base64(secret)))?.what, 'a GitHub token in base64 in gzip');
  });

  it('is found in base64 with lines that are quoted, in a comment, escaped, or joined by a space', () => {
    const pem = rsa.export({ format: 'pem', type: 'pkcs8' }) as string;
    const lines = base64(pem).match(/.{1,76}/g) ?? [];
    for (const separator of ['"\n  "', '" +\n "', '",\n "', '\n# ', '\n // ', '\\\n', '\\n', '\\r\\n', ' '])
      assert.equal(
        found(`x: "${lines.join(separator)}"\n`)?.what,
        'a private key in base64',
        JSON.stringify(separator),
      );
  });

  it('is found in a base64 value that a comma separates from another value', () => {
    const other = base64(randomBytes(48));
    assert.equal(found(`["${other}", "${base64(der(rsa, pkcs8))}"]`)?.what, 'a private key in base64');
  });

  it('is found as a key in DER in gzip, and in that in base64', () => {
    for (const [, key] of keys) {
      assert.equal(found(gzipSync(der(key, pkcs8)))?.what, 'a private key in gzip');
      assert.equal(found(base64(gzipSync(der(key, pkcs8))))?.what, 'a private key in gzip and base64');
    }
  });

  it('is found in UTF-16 in base64 and in gzip, with and without a byte order mark', () => {
    const pem = rsa.export({ format: 'pem', type: 'pkcs8' }) as string;
    const little = Buffer.from(`\ufeff${pem}`, 'utf16le');
    for (const bytes of [little, Buffer.from(little).swap16(), little.subarray(2)]) {
      assert.equal(found(base64(bytes))?.what, 'a private key in base64');
      assert.equal(found(gzipSync(bytes))?.what, 'a private key in gzip');
      assert.equal(found(base64(gzipSync(bytes)))?.what, 'a private key in gzip and base64');
    }
  });

  it('is found in a base64 value on the line after another value', () => {
    const other = base64('x'.repeat(20));
    assert.equal(other.at(-1), '=');
    assert.equal(found(`${other}\n${base64(secret)}\n`)?.line, 2);
  });

  it('is found in base64 that is inside base64', () => {
    assert.equal(found(base64(base64(secret)))?.what, 'a GitHub token in base64 in base64');
    assert.equal(found(base64(base64(base64(secret)))), undefined);
  });

  it('is found after fifteen values that expand to four megabytes each, and not after seventeen', () => {
    const expanding = `k: ${base64(gzipSync(Buffer.alloc(4_194_304, 'a ')))}\n`;
    assert.equal(found(`${expanding.repeat(15)}x: ${base64(secret)}`)?.line, 16);
    assert.equal(found(`${expanding.repeat(17)}x: ${base64(secret)}`), undefined);
  });

  it('of Writ itself is found in an included file too', () => {
    const key = JSON.stringify({ 'writ-key': 1, scheme: 'ed25519' });
    for (const content of [base64(key), gzipSync(key)]) assert.equal(found(content, 'own')?.isOwn, true);
    assert.equal(found(base64(secret), 'own'), undefined);
  });

  it('is found on the border of two chunks, at each position of a group of four characters', () => {
    for (const padding of [0, 1, 2, 3]) {
      const text = `${'-'.repeat(padding)}${base64(`${'word '.repeat(3000)}${token} ${'word '.repeat(300)}`)}`;
      const at = base64('word '.repeat(3000)).length + 20;
      assert.equal(found(text, 'all', at)?.what, 'a GitHub token in base64', String(padding));
    }
  });

  it('costs a bounded amount of work: a gzip file of zeros, and a line of four megabytes', longCase, () => {
    assert.equal(found(gzipSync(Buffer.alloc(300_000_000))), undefined);
    assert.equal(found(base64(gzipSync(Buffer.alloc(50_000_000, 'a')))), undefined);
    assert.equal(found('A'.repeat(maxScannedBytes)), undefined);
    assert.equal(found('MII'.repeat(maxScannedBytes / 3)), undefined);
  });

  it('is found at the begin of a gzip file that expands to more than the bound', () => {
    const text = `${secret}${randomBytes(30_000).toString('hex')}\n${'a line\n'.repeat(5_000_000)}`;
    assert.equal(found(gzipSync(text))?.what, 'a GitHub token in gzip');
  });

  it('is not seen in random bytes, digests, programs in gzip, and a gzip file that is damaged', () => {
    const digests = Array.from({ length: 20_000 }, () => randomBytes(32).toString('hex')).join('\n');
    assert.equal(found(digests), undefined);
    assert.equal(found(base64(randomBytes(3_000_000))), undefined);
    assert.equal(found(wrapped(randomBytes(1_000_000))), undefined);
    assert.equal(found(gzipSync(`\x7fELF\0\0 ${secret}`)), undefined);
    assert.equal(found(Buffer.concat([gzipSync('a').subarray(0, 10), Buffer.alloc(40, 0xff)])), undefined);
  });
});
