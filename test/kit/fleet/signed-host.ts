// A host as a fleet server sees it over HTTP, without an agent: its own key, an enrolment token, and reports signed by RFC 9421.
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import type { FleetReport } from '../../../src/core/fleet/report.js';
import { hostKeyIdOf } from '../../../src/fleet/hosts/signed-request.js';
import { reportOf } from './fleet-bench.js';

export interface SignedHost {
  readonly key: string;
  /** Raw public key, base64. */
  readonly publicKey: string;
  /** Sends a report signed by its key, with the next counter by default. */
  post(
    path: string,
    body: string | Buffer,
    more?: {
      readonly counter?: number;
      readonly created?: Date;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ): Promise<Response>;
  /** @returns the headers of such a request; given members replace its own */
  headersOf(
    body: string | Buffer,
    more?: { readonly counter?: number; readonly created?: Date; readonly fleet?: string },
  ): Promise<Readonly<Record<string, string>>>;
  /** @param headers in addition to its own */
  enrol(
    token: string,
    labels?: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Response>;
  report(more?: Partial<FleetReport>): Promise<Response>;
}

/**
 * @param url of the fleet server
 * @returns a host with a new key that is not enrolled yet
 */
export function signedHost(url: string, name: string): SignedHost {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const key = hostKeyIdOf(raw);
  const installId = `install-${key.slice(0, 8)}`;
  let next = 1;
  let fleet = 'none';
  const headersOf: SignedHost['headersOf'] = async (body, more = {}) => {
    const { counter = next++, created = new Date() } = more;
    const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
    const message = {
      method: 'POST',
      url: 'http://any.example/anywhere',
      headers: {
        'content-digest': digest,
        'writ-fleet': more.fleet ?? fleet,
        'writ-counter': String(counter),
      },
    };
    const signed = await httpbis.signMessage(
      {
        key: { id: key, alg: 'ed25519', sign: async (data: Buffer) => sign(null, data, privateKey) },
        fields: ['@method', 'content-digest', 'writ-fleet', 'writ-counter'],
        params: ['created', 'keyid', 'alg'],
        paramValues: { created },
      },
      message,
    );
    return { ...(signed.headers as Record<string, string>), 'content-type': 'application/json' };
  };
  const post: SignedHost['post'] = async (path, body, more) => {
    const headers = { ...(await headersOf(body, more)), ...more?.headers };
    return fetch(new URL(path, url), { method: 'POST', headers, body: Buffer.from(body) });
  };
  return {
    key,
    publicKey: raw.toString('base64'),
    post,
    headersOf,
    enrol: async (token, labels = {}, headers = {}) => {
      const request = {
        ...{ schema: 1, type: 'fleet.enrol', token, publicKey: raw.toString('base64') },
        ...{ host: name, labels, installId },
      };
      const answer = await post('/v1/enrol', JSON.stringify(request), { headers });
      if (answer.ok) fleet = ((await answer.clone().json()) as { fleet: string }).fleet;
      return answer;
    },
    report: (more = {}) => post('/v1/reports', JSON.stringify(reportOf(name, { installId, ...more }))),
  };
}
