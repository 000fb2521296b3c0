import assert from 'node:assert/strict';
import { createPrivateKey, sign } from 'node:crypto';
import { describe, it } from 'node:test';
import { httpbis } from 'http-message-signatures';
import { newSecret, readSecret } from '../../../../src/agent/fleet/fleet-key.js';
import { contentDigest, signedHeaders } from '../../../../src/agent/fleet/sign-request.js';
import { signedParts } from '../../../../src/core/fleet/signed-request.js';

/** RFC 9421, B.1.4 and B.2. */
const testKey = createPrivateKey(
  '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n',
);
const testRequest = {
  method: 'POST',
  url: 'https://example.com/foo?param=Value&Pet=dog',
  headers: {
    host: 'example.com',
    date: 'Tue, 20 Apr 2021 02:07:55 GMT',
    'content-type': 'application/json',
    'content-length': '18',
  },
};

describe('the library of signatures', () => {
  it('makes the Ed25519 signature of RFC 9421, B.2.6', async () => {
    const { headers } = await httpbis.signMessage(
      {
        key: { id: 'test-key-ed25519', sign: async (bytes) => sign(null, bytes, testKey) },
        ...{ name: 'sig-b26', params: ['created', 'keyid'] },
        fields: ['date', '@method', '@path', '@authority', 'content-type', 'content-length'],
        paramValues: { created: new Date(1_618_884_473_000) },
      },
      testRequest,
    );
    assert.equal(
      (headers as Record<string, string>)['Signature'],
      'sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:',
    );
  });
});

describe('a signed request', () => {
  it('is signed over its method, its body, its fleet and its counter, and over a nonce where there is one', async () => {
    const key = readSecret(newSecret());
    const body = '{"a":1}';
    const headers = await signedHeaders({
      ...{ method: 'POST', url: new URL('https://fleet/v1/reports'), body, keyId: 'k', createdMs: 1000 },
      ...{ parts: signedParts.challenged, sign: key.sign },
      headers: { 'writ-fleet': 'f', 'writ-counter': '7', 'writ-nonce': 'n' },
    });
    assert.equal(headers['content-digest'], contentDigest(body));
    assert.equal(
      headers['signature-input'],
      'writ=("@method" "content-digest" "writ-fleet" "writ-counter" "writ-nonce");created=1;keyid="k";alg="ed25519"',
    );
  });
});
