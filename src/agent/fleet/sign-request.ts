// Signs a request to a fleet server by RFC 9421 with Content-Digest. The library is loaded at the first signature only.
import { createHash } from 'node:crypto';
import { signatureParameters } from '../../core/fleet/signed-request.js';

export interface Unsigned {
  readonly method: string;
  readonly url: URL;
  readonly body: string;
  /** Headers to sign beside the digest of the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** The signed components of the request. */
  readonly parts: readonly string[];
  readonly keyId: string;
  readonly createdMs: number;
  readonly sign: (bytes: Uint8Array) => Buffer;
}

/** @returns all headers of the request, including its signature */
export async function signedHeaders(request: Unsigned): Promise<Record<string, string>> {
  const { method, url, body, parts, keyId, createdMs, sign } = request;
  // Loaded here, because the library needs ten megabytes and a host without a fleet does not use it.
  const { httpbis } = await import('http-message-signatures');
  const headers = { ...request.headers, 'content-digest': contentDigest(body) };
  const signed = await httpbis.signMessage(
    {
      key: { id: keyId, alg: 'ed25519', sign: async (bytes) => sign(bytes) },
      name: 'writ',
      params: [...signatureParameters],
      fields: [...parts],
      paramValues: { created: new Date(createdMs) },
    },
    { method, url, headers },
  );
  const all = Object.entries(signed.headers).map(
    ([name, value]) => [name.toLowerCase(), String(value)] as const,
  );
  return Object.fromEntries(all);
}

/** @returns the value of Content-Digest (RFC 9530) */
export function contentDigest(body: string): string {
  return `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
}
