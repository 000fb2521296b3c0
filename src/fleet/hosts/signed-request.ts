// Verifies the signature of a request: RFC 9421 over method, content-digest, fleet, counter and, in the answer to a challenge, the
// nonce (ADR 0042). The headers are verified before the body is read: an unauthenticated body must not take memory (ADR 0066).
// counter-rules.ts decides whether the counter is new. `created` is recorded and never decides.
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import {
  fleetHeaders,
  isExactSignatureInput,
  maxCounter,
  signedParts,
} from '../../core/fleet/signed-request.js';

export interface RequestHead {
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface SignedRequest {
  readonly kind: 'signed';
  /** SHA-256 of the raw key, hex. */
  readonly keyId: string;
  readonly counter: number;
  readonly nonce?: string;
  /** Identifier of the fleet that the host enrolled in. The caller compares it with its own. */
  readonly fleet: string;
  /** Time of the signature, by the clock of the host. */
  readonly createdAtMs: number;
  /** Expected SHA-256 of the body, hex. */
  readonly bodyDigest: string;
}

export interface RefusedRequest {
  readonly kind: 'refused';
  readonly code: 'FLEET_SIGNATURE_REFUSED' | 'FLEET_KEY_UNKNOWN';
  readonly reason: string;
}

const read = [...signedParts.challenged.slice(1), 'signature', 'signature-input'] as const;
const maxHeaderLength = 1024;

/**
 * Verifies the headers of a request. The caller then compares the body with `hasSignedBody`.
 *
 * @param keyOf returns the raw Ed25519 key for an id; undefined if no host enrolled it
 * @throws only the errors of keyOf
 */
export async function verifySignedHead(
  request: RequestHead,
  keyOf: (keyId: string) => Promise<Uint8Array | undefined>,
): Promise<SignedRequest | RefusedRequest> {
  const headers = readHeaders(request);
  if (headers === undefined) return refused('a header is missing, occurs twice, or is too long');
  const bodyDigest = /^sha-256=:([A-Za-z0-9+/]{43}=):$/.exec(headers['content-digest'] ?? '')?.[1];
  if (bodyDigest === undefined) return refused('the digest of the body is not one of SHA-256');
  const counter = readCounter(headers[fleetHeaders.counter] ?? '');
  if (counter === undefined) return refused('the counter is not a number');
  if (!isExactSignatureInput(headers['signature-input'] ?? ''))
    return refused(
      'a component or a parameter of the signature occurs twice, or `created` is not a whole number',
    );
  const signer = await verifyHeaders(request.method, headers, keyOf);
  if ('kind' in signer) return signer;
  const nonce = headers[fleetHeaders.nonce];
  return {
    kind: 'signed',
    ...signer,
    counter,
    ...(nonce === undefined ? {} : { nonce }),
    fleet: headers[fleetHeaders.fleet] ?? '',
    bodyDigest: Buffer.from(bodyDigest, 'base64').toString('hex'),
  };
}

/** @returns whether the body has the digest that was signed */
export function hasSignedBody({ bodyDigest }: Pick<SignedRequest, 'bodyDigest'>, body: Uint8Array): boolean {
  return createHash('sha256').update(body).digest('hex') === bodyDigest;
}

/** Converts a raw Ed25519 key for node:crypto. @returns undefined if it does not have 32 bytes */
export function ed25519Key(raw: Uint8Array): KeyObject | undefined {
  if (raw.length !== 32) return undefined;
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') };
  return createPublicKey({ key: jwk, format: 'jwk' });
}

/**
 * @param raw the public key of a host, as the raw bytes of Ed25519
 * @returns the id of the key in the store: its SHA-256 in hexadecimal
 */
export function hostKeyIdOf(raw: Uint8Array): string {
  return createHash('sha256').update(raw).digest('hex');
}

function readHeaders({ headers }: RequestHead): Record<string, string> | undefined {
  const found: Record<string, string> = {};
  for (const name of read) {
    const value = headers[name];
    if (value === undefined && name === fleetHeaders.nonce) continue;
    if (typeof value !== 'string' || value.length > maxHeaderLength) return undefined;
    found[name] = value;
  }
  return found;
}

function readCounter(text: string): number | undefined {
  const counter = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  // With a counter at the maximum, the host could not answer a challenge with a higher one.
  return counter < maxCounter ? counter : undefined;
}

type Signer = Pick<SignedRequest, 'keyId' | 'createdAtMs'>;

async function verifyHeaders(
  method: string,
  headers: Record<string, string>,
  keyOf: (keyId: string) => Promise<Uint8Array | undefined>,
): Promise<Signer | RefusedRequest> {
  const signers: Signer[] = [];
  let unknown = false;
  let failure: unknown;
  const holds = await httpbis
    .verifyMessage(
      {
        requiredParams: ['keyid', 'created', 'alg'],
        requiredFields: [...(fleetHeaders.nonce in headers ? signedParts.challenged : signedParts.first)],
        // Accept every date: a host with a wrong clock must still be able to report it.
        notAfter: Number.MAX_SAFE_INTEGER,
        keyLookup: async ({ keyid, created }) => {
          const keyId = keyid ?? '';
          signers.push({ keyId, createdAtMs: created?.getTime() ?? Number.NaN });
          const raw = await keyOf(keyId).catch((error: unknown) => {
            failure = error;
            return undefined;
          });
          const key = raw === undefined ? undefined : ed25519Key(raw);
          unknown ||= key === undefined;
          if (key === undefined) return null;
          return { algs: ['ed25519'], verify: (data, signature) => verifyOnThread(data, key, signature) };
        },
      },
      { method, url: 'http://unsigned/', headers },
    )
    .catch(() => false);
  // A failure of the store is not a refusal of the request.
  if (failure !== undefined) throw failure;
  const [signer] = signers;
  if (unknown) return { kind: 'refused', code: 'FLEET_KEY_UNKNOWN', reason: 'no host has this key' };
  // Require exactly one signature: of two, the library verifies only one.
  if (
    holds !== true ||
    signer === undefined ||
    signers.length !== 1 ||
    !Number.isSafeInteger(signer.createdAtMs)
  )
    return refused('the signature does not verify');
  return signer;
}

/** Verifies on a worker thread. Verification takes a fifth of the time of a report and would block the main thread. */
function verifyOnThread(data: Buffer, key: KeyObject, signature: Buffer): Promise<boolean> {
  return new Promise((resolve, reject) => {
    verify(null, data, key, signature, (error, holds) => (error ? reject(error) : resolve(holds)));
  });
}

function refused(reason: string): RefusedRequest {
  return { kind: 'refused', code: 'FLEET_SIGNATURE_REFUSED', reason };
}
