// What hosts send: a request to enrol and reports, each held to the key that signed it. Answers behind the commit. Owns which
// status and code a host hears; what is stored is the ingest's.
import { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';
import { enrolHost } from '../hosts/enrol.js';
import { HostKeys } from '../hosts/host-keys.js';
import type { Ingest } from '../hosts/ingest.js';
import { readEnrolRequest } from '../hosts/read-report.js';
import type { ReportVerdict } from '../hosts/report-plan.js';
import { keyIdOf, type SignedRequest, verifySignedRequest } from '../hosts/signed-request.js';
import type { FleetStore } from '../store/open-store.js';
import type { FleetMetrics } from './fleet-metrics.js';
import type { RefusalBound } from './refusal-bound.js';
import type { Asked, Route } from './routes.js';

export interface HostRoutesOptions {
  readonly store: FleetStore;
  readonly ingest: Ingest;
  readonly bound: RefusalBound;
  readonly clock: Clock;
  readonly metrics: FleetMetrics;
}

export function hostRoutes({ store, ingest, bound, clock, metrics }: HostRoutesOptions): readonly Route[] {
  const keys = new HostKeys(store.db);
  const signedBy = async (
    { request }: Asked,
    keyOf: (keyId: string) => Promise<Uint8Array | undefined>,
  ): Promise<SignedRequest> => {
    const { method, headers } = request;
    const verdict = await verifySignedRequest({ method, headers, body: bytesOf(request.body) }, keyOf);
    if (verdict.kind === 'signed') return verdict;
    throw new WritError(verdict.code, verdict.reason);
  };
  return [
    {
      method: 'POST',
      url: '/v1/enrol',
      summary: 'Enrol a host with its key',
      access: 'host',
      raw: true,
      handle: async (asked) => {
        const read = readEnrolRequest(bytesOf(asked.request.body));
        if (read.kind === 'refused') throw new WritError('FLEET_REPORT_INVALID', read.reason);
        const raw = Buffer.from(read.data.publicKey, 'base64');
        // By the key that it is to be known by, and no other: nobody enrols the key of somebody else.
        const own = async (keyId: string) => (keyIdOf(raw) === keyId ? raw : undefined);
        const { counter } = await signedBy(asked, own);
        const from = { address: asked.request.ip, credential: read.data.token };
        return bound.guard(from, () =>
          enrolHost(store, { request: read.data, counter, nowMs: clock.nowMs() }),
        );
      },
    },
    {
      method: 'POST',
      url: '/v1/reports',
      summary: 'Report of a host; answered when it is stored',
      access: 'host',
      raw: true,
      handle: async (asked) => {
        const startedMs = clock.monotonicMs();
        const from = { address: asked.request.ip, credential: claimedKey(asked) };
        const signed = await bound.guard(from, () => signedBy(asked, (keyId) => keys.keyOf(keyId)));
        if (signed.fleet !== store.fleetId)
          throw new WritError('FLEET_SIGNATURE_REFUSED', 'the report is for another fleet');
        const verdict = await ingest.take(signed, bytesOf(asked.request.body));
        metrics.report(verdict.kind, clock.monotonicMs() - startedMs);
        return answerTo(verdict, asked);
      },
    },
  ];
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

/** Whom the request claims to be from: nothing is proven by it. */
function claimedKey({ request }: Asked): string {
  return /;keyid="([0-9a-f]{64})"/.exec(String(request.headers['signature-input']))?.[1] ?? '';
}

/** A request without a body has none to digest. */
function bytesOf(body: unknown): Uint8Array {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}
