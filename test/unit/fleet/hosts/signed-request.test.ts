import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { describe, it } from 'node:test';
import { httpbis } from 'http-message-signatures';
import { maxCounter } from '../../../../src/core/fleet/signed-request.js';
import {
  ed25519Key,
  hasSignedBody,
  hostKeyIdOf,
  type RequestHead,
  verifySignedHead,
} from '../../../../src/fleet/hosts/signed-request.js';

interface Signing {
  readonly fields?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly params?: readonly string[];
  readonly alg?: string;
  readonly method?: string;
  readonly created?: Pick<Date, 'getTime'>;
}

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
const keyId = hostKeyIdOf(raw);
const body = Buffer.from('{"hello": "world"}');
const digestOf = (bytes: Uint8Array): string =>
  `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`;
const usualFields = ['@method', 'content-digest', 'writ-fleet', 'writ-counter'];

async function signed(
  {
    fields = usualFields,
    headers = {},
    params,
    alg = 'ed25519',
    method = 'POST',
    created = new Date(1_700_000_000_000),
  }: Signing = {},
  key: KeyObject = privateKey,
): Promise<RequestHead> {
  const message = {
    method,
    url: 'http://any.example/anywhere',
    headers: { 'content-digest': digestOf(body), 'writ-fleet': 'fleet-1', 'writ-counter': '42', ...headers },
  };
  const config = {
    key: { id: keyId, alg, sign: async (data: Buffer) => sign(null, data, key) },
    fields: [...fields],
    params: [...(params ?? ['created', 'keyid', 'alg'])],
    paramValues: { created: created as Date },
  };
  const result = await httpbis.signMessage(config, message);
  const lower = Object.entries(result.headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return { method, headers: Object.fromEntries(lower) };
}

const known = async (id: string): Promise<Uint8Array | undefined> => (id === keyId ? raw : undefined);
const codeOf = async (request: RequestHead): Promise<string> => {
  const verdict = await verifySignedHead(request, known);
  return verdict.kind === 'refused' ? verdict.code : verdict.kind;
};

describe('the library of signatures', () => {
  it('verifies the Ed25519 vector of RFC 9421, B.2.6', async () => {
    const key = ed25519Key(Buffer.from('JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs', 'base64url'));
    assert.ok(key);
    const input =
      'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"';
    const message = {
      method: 'POST',
      url: 'http://example.com/foo?param=Value&Pet=dog',
      headers: {
        ...{ Host: 'example.com', Date: 'Tue, 20 Apr 2021 02:07:55 GMT', 'Content-Type': 'application/json' },
        ...{ 'Content-Length': '18', 'Signature-Input': input },
        Signature:
          'sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:',
      },
    };
    const verifier = {
      verify: async (data: Buffer, signature: Buffer) => verify(null, data, key, signature),
    };
    assert.equal(await httpbis.verifyMessage({ keyLookup: async () => verifier }, message), true);
    const bent = { ...message, headers: { ...message.headers, 'Content-Length': '19' } };
    assert.equal(await httpbis.verifyMessage({ keyLookup: async () => verifier }, bent), false);
  });
});

describe('a signed request', () => {
  it('identifies its signer, its content, and its time by the clock of the signer', async () => {
    assert.deepEqual(await verifySignedHead(await signed(), known), {
      kind: 'signed',
      keyId,
      counter: 42,
      fleet: 'fleet-1',
      createdAtMs: 1_700_000_000_000,
      bodyDigest: createHash('sha256').update(body).digest('hex'),
    });
  });

  it('carries the nonce of a challenge, which must be signed', async () => {
    const headers = { 'writ-nonce': 'n' };
    const verdict = await verifySignedHead(
      await signed({ fields: [...usualFields, 'writ-nonce'], headers }),
      known,
    );
    assert.equal(verdict.kind === 'signed' && verdict.nonce, 'n');
    assert.equal(await codeOf(await signed({ headers })), 'FLEET_SIGNATURE_REFUSED');
  });

  it('is refused when any part of it was changed after the signing', async () => {
    const request = await signed();
    const bent: readonly RequestHead[] = [
      { ...request, method: 'PUT' },
      ...[{ 'writ-counter': '43' }, { 'writ-fleet': 'fleet-2' }, { 'writ-nonce': 'n' }].map((headers) => ({
        ...request,
        headers: { ...request.headers, ...headers },
      })),
    ];
    for (const one of bent) assert.equal(await codeOf(one), 'FLEET_SIGNATURE_REFUSED');
    assert.equal(await codeOf(request), 'signed');
  });

  it('accepts only a body with the signed digest', async () => {
    const verdict = await verifySignedHead(await signed(), known);
    assert.ok(verdict.kind === 'signed');
    assert.equal(hasSignedBody(verdict, body), true);
    for (const other of ['{"hello": "World"}', '', `${body.toString()} `])
      assert.equal(hasSignedBody(verdict, Buffer.from(other)), false, other);
  });

  it('is refused with a digest of another algorithm, or beside another one', async () => {
    const digest = digestOf(body);
    for (const value of [`sha-512=:${'A'.repeat(86)}==:`, `${digest}, ${digest}`, digest.toUpperCase()])
      assert.equal(
        await codeOf(await signed({ headers: { 'content-digest': value } })),
        'FLEET_SIGNATURE_REFUSED',
        value,
      );
  });

  for (const left of usualFields)
    it(`is refused when ${left} is not signed`, async () => {
      const fields = usualFields.filter((field) => field !== left);
      assert.equal(await codeOf(await signed({ fields })), 'FLEET_SIGNATURE_REFUSED');
    });

  for (const left of ['created', 'keyid', 'alg'])
    it(`is refused without ${left}`, async () => {
      const params = ['created', 'keyid', 'alg'].filter((param) => param !== left);
      assert.notEqual(await codeOf(await signed({ params })), 'signed');
    });

  it('is refused where a component is covered twice, a parameter occurs twice, or created is no whole number', async () => {
    const request = await signed();
    // The signature is valid for the library, so that the refusal has another reason.
    const signedInput = (bend: (input: string) => string): RequestHead => {
      const input = bend(String(request.headers['signature-input']).replace('sig=', ''));
      const fields = [...input.slice(0, input.indexOf(')')).matchAll(/"([^"]+)"/g)].map(
        ([, name = '']) => name,
      );
      const lines = fields.map((name) => `"${name}": ${name === '@method' ? 'POST' : request.headers[name]}`);
      const base = [...lines, `"@signature-params": ${input}`].join('\n');
      const signature = `sig=:${sign(null, Buffer.from(base), privateKey).toString('base64')}:`;
      return { ...request, headers: { ...request.headers, 'signature-input': `sig=${input}`, signature } };
    };
    assert.equal(await codeOf(signedInput((input) => input)), 'signed');
    for (const bend of [
      (input: string) => input.replace('"writ-counter"', '"writ-counter" "writ-counter"'),
      (input: string) => input.replace('"@method"', '"@method" "@method"'),
      (input: string) => input.replace('created=1700000000', 'created=1700000000.5'),
      (input: string) => input.replace('created=1700000000', 'created=-1'),
      (input: string) => input.replace('created=1700000000', 'created="1700000000"'),
    ])
      assert.equal(await codeOf(signedInput(bend)), 'FLEET_SIGNATURE_REFUSED', bend('"writ-counter"'));
    // The library verifies these two, because it keeps the last parameter of a name.
    for (const more of [';created=1700000000', ';alg="ed25519"']) {
      const headers = {
        ...request.headers,
        'signature-input': `${String(request.headers['signature-input'])}${more}`,
      };
      assert.equal(await codeOf({ ...request, headers }), 'FLEET_SIGNATURE_REFUSED', more);
    }
  });

  it('is refused with another algorithm, another key, two signatures, or a header twice', async () => {
    assert.equal(await codeOf(await signed({ alg: 'hmac-sha256' })), 'FLEET_SIGNATURE_REFUSED');
    const other = generateKeyPairSync('ed25519');
    assert.equal(await codeOf(await signed({}, other.privateKey)), 'FLEET_SIGNATURE_REFUSED');
    const request = await signed();
    const twice = (name: string): string =>
      `${request.headers[name]}, ${String(request.headers[name]).replace('sig=', 'sig2=')}`;
    const two = {
      ...request.headers,
      signature: twice('signature'),
      'signature-input': twice('signature-input'),
    };
    assert.equal(await codeOf({ ...request, headers: two }), 'FLEET_SIGNATURE_REFUSED');
    const list = { ...request.headers, 'writ-counter': ['42', '43'] };
    assert.equal(await codeOf({ ...request, headers: list }), 'FLEET_SIGNATURE_REFUSED');
  });

  it('is FLEET_KEY_UNKNOWN for an unknown key, and has no verdict while the store is unreachable', async () => {
    const request = await signed();
    const unknown = await verifySignedHead(request, async () => undefined);
    assert.equal(unknown.kind === 'refused' && unknown.code, 'FLEET_KEY_UNKNOWN');
    const away = (): Promise<never> => Promise.reject(new Error('away'));
    await assert.rejects(verifySignedHead(request, away), /away/);
  });

  it('has a counter below the maximum, so that an answer to a challenge can be higher', async () => {
    const at = async (counter: number) =>
      codeOf(await signed({ headers: { 'writ-counter': String(counter) } }));
    assert.equal(await at(maxCounter - 1), 'signed');
    assert.equal(await at(maxCounter), 'FLEET_SIGNATURE_REFUSED');
    assert.equal(maxCounter, 2 ** 52);
  });

  it('is refused when its time is not a time, although it is signed', async () => {
    assert.equal(await codeOf(await signed({ created: { getTime: () => 8.64e15 } })), 'signed');
    const beyond = await signed({ created: { getTime: () => 8.65e15 } });
    assert.equal(await codeOf(beyond), 'FLEET_SIGNATURE_REFUSED');
  });

  it('is refused when a header is too long, although it is signed', async () => {
    const at = async (length: number) =>
      codeOf(await signed({ headers: { 'writ-fleet': 'x'.repeat(length) } }));
    assert.deepEqual([await at(1024), await at(1025)], ['signed', 'FLEET_SIGNATURE_REFUSED']);
  });

  it('is refused with any malformed headers', async () => {
    const request = await signed();
    const nonsense = [
      '',
      'x',
      'sig=()',
      'sig=:AAAA:',
      '\u0000',
      'a'.repeat(2000),
      '42, 42',
      '-1',
      '1e3',
      '9007199254740992',
    ];
    for (const name of ['signature', 'signature-input', 'content-digest', 'writ-counter'])
      for (const value of nonsense)
        assert.notEqual(
          await codeOf({ ...request, headers: { ...request.headers, [name]: value } }),
          'signed',
          `${name}: ${value}`,
        );
    for (const name of ['signature', 'signature-input', 'content-digest', 'writ-counter', 'writ-fleet'])
      assert.notEqual(
        await codeOf({ ...request, headers: { ...request.headers, [name]: undefined } }),
        'signed',
        name,
      );
  });
});
