// Routes of hosts: an enrolment, and reports. Their headers prove the sender before the body is read (ADR 0066); the answer is sent
// after the commit. Chooses statuses and codes of the answers; the ingest decides what is stored.
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
import { hasSignedBody, hostKeyIdOf, type SignedRequest, verifySignedHead } from '../hosts/signed-request.js';
import type { FleetStore } from '../store/open-store.js';
import { stateOfToken } from '../tokens/token-rules.js';
import { findToken, tokenRefused } from '../tokens/tokens.js';
import { readBearer } from './callers.js';
import type { FleetMetrics } from './fleet-metrics.js';
import type { RefusalBound } from './refusal-bound.js';
import type { Route, RouteRequest } from './routes.js';

export interface HostRoutesOptions {
  readonly store: FleetStore;
  readonly ingest: Ingest;
  readonly bound: RefusalBound;
  readonly clock: Clock;
  readonly metrics: FleetMetrics;
  /** Addresses from each of which many hosts send requests. */
  readonly shared: BlockList;
}

/** Simultaneous enrolments of one address without a valid token in the headers. */
const maxEnrolmentsOfAddress = 4;

/** @returns the two routes that hosts use: the enrolment of a key, and the reports of an enrolled key */
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
      const bearer = readBearer(request.headers);
      if (bearer === undefined) return unproven(request);
      const token = await bound.guard({ address: request.ip, credential: bearer }, async () => {
        const found = await findToken(store.db, bearer, 'hosts');
        if (found === undefined) throw tokenRefused('unknown', 'hosts');
        return found;
      });
      // A host that did not receive the answer repeats the enrolment with a token that is used up now.
      if (stateOfToken(token, clock.nowMs()) !== 'good') return unproven(request);
      const account = { kind: 'credential', id: `token ${token.id}`, maxBytes: tokenShareBytes } as const;
      return { account, maxBytes: fleetBounds.maxReportBytes };
    },
    handle: async ({ request }) => {
      const body = bytesOf(request.body);
      const read = readEnrolRequest(body);
      if (read.kind === 'refused') throw new WritError('FLEET_REPORT_INVALID', read.reason);
      const raw = Buffer.from(read.data.publicKey, 'base64');
      // Verified with the key that is enrolled, so that a host cannot enrol the key of another one.
      const own = async (keyId: string) => (hostKeyIdOf(raw) === keyId ? raw : undefined);
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
      const from = { address: request.ip, credential: readClaimedKeyId(request) };
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
      return sendVerdict(verdict, asked);
    },
  };
}

/** A key that waits, is retired, or did not report since the start shares the budget of its address. */
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

function sendVerdict(verdict: ReportVerdict, { reply }: RouteRequest): unknown {
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

/** The key id in the headers, which proves nothing. */
function readClaimedKeyId({ headers }: FastifyRequest): string {
  return /;keyid="([0-9a-f]{64})"/.exec(String(headers['signature-input']))?.[1] ?? '';
}

/** The bytes of a body; none for a request without a body. */
function bytesOf(body: unknown): Uint8Array {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}
