// The requests of hosts: an enrolment, and reports. Their headers prove the sender before the body is read (ADR 0066); the answer comes
// after the commit. Owns statuses and codes of the answers; the ingest decides what is stored.
import type { BlockList } from 'node:net';
import { isIPv6 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { WritError } from '../../core/errors.js';
import { fleetBounds } from '../../core/fleet/report.js';
import { clientOf } from '../../platform/serve/admission.js';
import type { Clock } from '../../platform/time/clock.js';
import { hostKeyShareBytes, tokenShareBytes } from '../bodies/body-budget.js';
import { type BodyTerms, termsOfAddress } from '../bodies/body-gate.js';
import { KeyRate } from '../bodies/key-rate.js';
import { enrolHost } from '../hosts/enrol.js';
import { HostKeys } from '../hosts/host-keys.js';
import type { Ingest } from '../hosts/ingest.js';
import { readEnrolRequest } from '../hosts/read-report.js';
import type { ReportVerdict } from '../hosts/report-plan.js';
import { hasSignedBody, keyIdOf, type SignedRequest, verifySignedHead } from '../hosts/signed-request.js';
import type { FleetStore } from '../store/open-store.js';
import { stateOfToken } from '../tokens/token-rules.js';
import { findToken, tokenRefused } from '../tokens/tokens.js';
import { bearerOf } from './callers.js';
import type { FleetMetrics } from './fleet-metrics.js';
import type { RefusalBound } from './refusal-bound.js';
import type { Asked, Route } from './routes.js';

export interface HostRoutesOptions {
  readonly store: FleetStore;
  readonly ingest: Ingest;
  readonly bound: RefusalBound;
  readonly clock: Clock;
  readonly metrics: FleetMetrics;
  /** Addresses of which each brings the requests of many hosts. */
  readonly shared: BlockList;
}

/** Of enrolments of one address at the same time, without a good token in the headers. */
const maxEnrolmentsOfAddress = 4;

export function hostRoutes(options: HostRoutesOptions): readonly Route[] {
  return [enrolRoute(options), reportRoute(options)];
}

function enrolRoute({ store, bound, clock, shared }: HostRoutesOptions): Route {
  const unproven = ({ ip }: FastifyRequest): BodyTerms =>
    termsOfAddress(ip, shared.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4') ? undefined : maxEnrolmentsOfAddress);
  return {
    method: 'POST',
    url: '/v1/enrol',
    summary: 'Enrol a host with its key; the token in Authorization too, else 16 kB and four at a time',
    access: 'host',
    maxBodyBytes: fleetBounds.maxReportBytes,
    raw: true,
    admit: async (request) => {
      const bearer = bearerOf(request.headers);
      if (bearer === undefined) return unproven(request);
      const token = await bound.guard({ address: request.ip, credential: bearer }, async () => {
        const found = await findToken(store.db, bearer, 'hosts');
        if (found === undefined) throw tokenRefused('unknown', 'hosts');
        return found;
      });
      // A host that lost its answer repeats the enrolment with a token that is used up by now.
      if (stateOfToken(token, clock.nowMs()) !== 'good') return unproven(request);
      const account = { kind: 'credential', id: `token ${token.id}`, maxBytes: tokenShareBytes } as const;
      return { account, maxBytes: fleetBounds.maxReportBytes };
    },
    handle: async ({ request }) => {
      const body = bytesOf(request.body);
      const read = readEnrolRequest(body);
      if (read.kind === 'refused') throw new WritError('FLEET_REPORT_INVALID', read.reason);
      const raw = Buffer.from(read.data.publicKey, 'base64');
      // By the key that it is to be known by, and no other: a host cannot enrol the key of another one.
      const own = async (keyId: string) => (keyIdOf(raw) === keyId ? raw : undefined);
      const signed = await verifyHead(request, own);
      requireSignedBody(signed, body);
      const { counter } = signed;
      const from = { address: request.ip, credential: read.data.token };
      return bound.guard(from, () => enrolHost(store, { request: read.data, counter, nowMs: clock.nowMs() }));
    },
  };
}

interface AdmittedReport {
  readonly signed: SignedRequest;
  readonly startedMs: number;
}

function reportRoute({ store, ingest, bound, clock, metrics }: HostRoutesOptions): Route {
  const keys = new HostKeys(store.db);
  const rate = new KeyRate();
  const admitted = new WeakMap<FastifyRequest, AdmittedReport>();
  return {
    method: 'POST',
    url: '/v1/reports',
    summary: 'Report of a host; answered when it is stored',
    access: 'host',
    maxBodyBytes: fleetBounds.maxReportBytes,
    raw: true,
    admit: async (request) => {
      const startedMs = clock.monotonicMs();
      const from = { address: request.ip, credential: claimedKey(request) };
      const signed = await bound.guard(from, () => verifyHead(request, (keyId) => keys.keyOf(keyId)));
      if (signed.fleet !== store.fleetId)
        throw new WritError('FLEET_SIGNATURE_REFUSED', 'the report is for another fleet');
      const { keyId, counter } = signed;
      if (!rate.take(keyId, counter, startedMs))
        throw new WritError('FLEET_REPORTS_OFTEN', 'this key reports too often', { facts: { keyId } });
      admitted.set(request, { signed, startedMs });
      return { account: accountOf(request, keyId, rate), maxBytes: fleetBounds.maxReportBytes };
    },
    handle: async (asked) => {
      const { signed, startedMs } = admitted.get(asked.request) as AdmittedReport;
      const body = bytesOf(asked.request.body);
      requireSignedBody(signed, body);
      const verdict = await ingest.take(signed, body);
      if (verdict.kind === 'accepted' || verdict.kind === 'refused')
        rate.note(signed.keyId, signed.counter, verdict.kind === 'accepted');
      metrics.report(verdict.kind, clock.monotonicMs() - startedMs);
      return answerTo(verdict, asked);
    },
  };
}

/** A key that waits, was retired, or reported nothing yet since the start has what its address has. */
function accountOf({ ip }: FastifyRequest, keyId: string, rate: KeyRate): BodyTerms['account'] {
  return rate.isAccepted(keyId)
    ? { kind: 'credential', id: `host ${keyId}`, maxBytes: hostKeyShareBytes }
    : { kind: 'address', client: clientOf(ip) };
}

/** @throws FLEET_SIGNATURE_REFUSED, FLEET_KEY_UNKNOWN */
async function verifyHead(
  { method, headers }: FastifyRequest,
  keyOf: (keyId: string) => Promise<Uint8Array | undefined>,
): Promise<SignedRequest> {
  const verdict = await verifySignedHead({ method, headers }, keyOf);
  if (verdict.kind === 'signed') return verdict;
  throw new WritError(verdict.code, verdict.reason);
}

/** @throws FLEET_SIGNATURE_REFUSED */
function requireSignedBody(signed: SignedRequest, body: Uint8Array): void {
  if (hasSignedBody(signed, body)) return;
  throw new WritError('FLEET_SIGNATURE_REFUSED', 'the digest of the body does not match the signed one');
}

function answerTo(verdict: ReportVerdict, { reply }: Asked): unknown {
  switch (verdict.kind) {
    case 'accepted':
      return verdict.answer;
    case 'challenge':
      return reply.code(409).send(verdict.challenge);
    case 'refused':
      throw new WritError(verdict.code, verdict.reason ?? 'the report was refused');
    case 'unavailable':
      throw new WritError('FLEET_OVERLOADED', 'the report was not stored');
  }
}

/** The key that the request names: nothing is proven by it. */
function claimedKey({ headers }: FastifyRequest): string {
  return /;keyid="([0-9a-f]{64})"/.exec(String(headers['signature-input']))?.[1] ?? '';
}

/** A request without a body has none to digest. */
function bytesOf(body: unknown): Uint8Array {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}
