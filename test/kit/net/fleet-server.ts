// A fake fleet server: it verifies each signature with the library, applies the replay rules to counters, and records requests.
// It has no store; a test changes its answers.
import { createHash, createPublicKey, verify } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { httpbis } from 'http-message-signatures';
import type { EnrolRequest, FleetReport } from '../../../src/core/fleet/report.js';
import { signedParts } from '../../../src/core/fleet/signed-request.js';
import { type HttpFixture, httpFixture } from './http-fixture.js';

export interface ReceivedReport {
  readonly report: FleetReport;
  readonly counter: number;
  readonly keyId: string;
  readonly nonce: string | undefined;
  readonly status: number;
}

export interface FleetStandIn extends AsyncDisposable {
  /** URL for `fleet.url`. */
  readonly url: string;
  readonly tokens: Set<string>;
  readonly enrolments: EnrolRequest[];
  /** Reports with a valid signature, in order. */
  readonly reports: ReceivedReport[];
  /** Requests with an invalid signature or digest, enrolments without the token in their headers, reports with one. */
  readonly unproven: string[];
  /** Number of the last stored outcome by key. */
  readonly outcomes: Map<string, number>;
  readonly counters: Map<string, number>;
  readonly retired: Set<string>;
  /** Number of requests of any kind. */
  asked(): number;
  /** Whether new keys wait for approval. */
  approves: 'at-once' | 'later';
  /** The granted reporting interval; the requested one by default. */
  grantsMs: number | undefined;
  /** Replaces each answer. */
  bend: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** Stored reports. */
  stored(): readonly FleetReport[];
  approveAll(): void;
}

interface Known {
  readonly publicKey: string;
  state: 'accepted' | 'waiting';
  digest?: string;
  nonce?: string;
}

/** @example await using fleet = await fleetStandIn(); configure({ fleet: { url: fleet.url, tokenFile } }); */
export async function fleetStandIn(): Promise<FleetStandIn> {
  const keys = new Map<string, Known>();
  const fixture: HttpFixture = await httpFixture((request, response) => {
    if (stand.bend !== undefined) return stand.bend(request, response);
    void answer(request, response);
  });
  const respond = (response: ServerResponse, status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    if (request.url === '/v1/enrol') return enrol(request, body, response);
    return report(request, body, response);
  };
  const enrol = async (request: IncomingMessage, body: string, response: ServerResponse): Promise<void> => {
    const asked = JSON.parse(body) as EnrolRequest;
    const keyId = createHash('sha256')
      .update(Buffer.from(asked.publicKey, 'base64'))
      .digest('hex')
      .slice(0, 32);
    const hasToken = request.headers.authorization === `Bearer ${asked.token}`;
    if (!hasToken || !(await holds(request, body, asked.publicKey, signedParts.first))) {
      stand.unproven.push(body);
      return respond(response, 401, {});
    }
    stand.enrolments.push(asked);
    if (!keys.has(keyId) && !stand.tokens.has(asked.token)) return respond(response, 401, {});
    const known = keys.get(keyId) ?? {
      publicKey: asked.publicKey,
      state: stand.approves === 'later' ? 'waiting' : 'accepted',
    };
    keys.set(keyId, known);
    respond(response, 200, { fleet: 'fleet-1', keyId, state: known.state });
  };
  const report = async (request: IncomingMessage, body: string, response: ServerResponse): Promise<void> => {
    const header = (name: string): string => String(request.headers[name] ?? '');
    const keyId = /keyid="([^"]*)"/.exec(header('signature-input'))?.[1] ?? '';
    const known = keys.get(keyId);
    if (known === undefined) return respond(response, 401, {});
    const nonce = request.headers['writ-nonce'] === undefined ? undefined : header('writ-nonce');
    const all = nonce === undefined ? signedParts.first : signedParts.challenged;
    const isRight = header('writ-fleet') === 'fleet-1' && request.headers.authorization === undefined;
    if (!isRight || !(await holds(request, body, known.publicKey, all))) {
      stand.unproven.push(body);
      return respond(response, 401, {});
    }
    const report = JSON.parse(body) as FleetReport;
    const counter = Number(header('writ-counter'));
    const last = stand.counters.get(keyId) ?? 0;
    const note = (status: number, answered: object): void => {
      stand.reports.push({ report: report, counter, keyId, nonce, status });
      respond(response, status, answered);
    };
    if (stand.retired.has(keyId)) return note(403, { code: 'FLEET_KEY_RETIRED' });
    const isRepeated = counter === last && known.digest === header('content-digest');
    if (counter <= last && !isRepeated) {
      known.nonce = `nonce-${stand.reports.length}`;
      return note(409, { counter: last, nonce: known.nonce });
    }
    if (nonce !== undefined && nonce !== known.nonce) return note(401, {});
    stand.counters.set(keyId, counter);
    known.digest = header('content-digest');
    const stored = Math.max(stand.outcomes.get(keyId) ?? 0, ...report.outcomes.map(({ n }) => n));
    stand.outcomes.set(keyId, stored);
    note(200, { everyMs: stand.grantsMs ?? report.everyMs, outcomes: stored });
  };
  const stand: FleetStandIn = {
    ...{ url: fixture.url, tokens: new Set(['writ_host_good']), enrolments: [], reports: [], unproven: [] },
    ...{ outcomes: new Map(), counters: new Map(), retired: new Set(), approves: 'at-once' },
    ...{ grantsMs: undefined, bend: undefined },
    asked: () => fixture.requests.length,
    stored: () => stand.reports.filter(({ status }) => status === 200).map((one) => one.report),
    approveAll: () => {
      for (const one of keys.values()) one.state = 'accepted';
    },
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
  return stand;
}

/** Verifies signature, digest and covered components. */
async function holds(
  request: IncomingMessage,
  body: string,
  publicKey: string,
  parts: readonly string[],
): Promise<boolean> {
  const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
  if (request.headers['content-digest'] !== digest) return false;
  const x = Buffer.from(publicKey, 'base64').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  );
  const message = { method: request.method ?? '', url: `http://fleet.test${request.url}`, headers };
  const isGood = await httpbis.verifyMessage(
    {
      // Only the counter decides about a replay, because the clock of a host may be wrong.
      tolerance: Number.MAX_SAFE_INTEGER / 1000,
      notAfter: new Date(8.64e15),
      requiredFields: [...parts],
      requiredParams: ['created', 'keyid', 'alg'],
      keyLookup: async () => ({
        algs: ['ed25519'],
        verify: async (data, signature) => verify(null, data, key, signature),
      }),
    },
    message,
  );
  return isGood === true;
}
