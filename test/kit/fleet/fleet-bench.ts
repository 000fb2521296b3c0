// A fleet store with tokens, enrolled hosts and their reports, without a network or signatures, which have their own tests.
import { createHash } from 'node:crypto';
import type { FleetReport } from '../../../src/core/fleet/report.js';
import type { NewToken } from '../../../src/core/fleet/token-answers.js';
import { enrolHost } from '../../../src/fleet/hosts/enrol.js';
import type { Ingest } from '../../../src/fleet/hosts/ingest.js';
import type { ReportVerdict } from '../../../src/fleet/hosts/report-plan.js';
import { type FleetStore, openFleetStore } from '../../../src/fleet/store/open-store.js';
import { createToken } from '../../../src/fleet/tokens/tokens.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import type { Clock } from '../../../src/platform/time/clock.js';
import { seededBytes } from '../assert/seeded.js';

/** Makes the location of a store, a path or a postgres:// URL. Each call returns an empty one. */
export type NewLocation = () => string | Promise<string>;

export interface BenchHost {
  readonly keyId: string;
  readonly name: string;
  /** The counter of its next report. */
  counter: number;
}

export interface FleetBench {
  readonly store: FleetStore;
  readonly clock: Clock;
  token(wanted?: Partial<NewToken>): Promise<{ readonly id: string; readonly token: string }>;
  enrol(
    token: string,
    name: string,
    more?: Partial<EnrolMore>,
  ): Promise<BenchHost & { readonly state: string }>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface EnrolMore {
  readonly ephemeral: true;
  readonly replaces: true;
  readonly labels: Record<string, string>;
  readonly publicKey: string;
}

/**
 * Opens the store at the location. The keys of enrolled hosts are equal in each run.
 * @throws WritError if the store cannot be opened
 */
export async function fleetBench(
  location: string,
  clock: Clock,
  more: { readonly onSql?: (sql: string) => void; readonly busyTimeoutMs?: number } = {},
): Promise<FleetBench> {
  const store = await openFleetStore(location, { clock, log: silentLog(), ...more });
  let keys = 0;
  // Constant keys, because lists are sorted by the digests of the keys.
  const nextKey = (): string => seededBytes(32, keys++).toString('base64');
  return {
    store,
    clock,
    token: (wanted = {}) =>
      createToken(store.db, { kind: 'hosts', ...wanted }, { who: 'test', nowMs: clock.nowMs() }),
    enrol: async (token, name, { publicKey = nextKey(), labels = {}, ...flags } = {}) => {
      const request = {
        schema: 1,
        type: 'fleet.enrol',
        token,
        publicKey,
        host: name,
        labels,
        ...flags,
      } as const;
      const enrolment = {
        request: { ...request, installId: `install-${name}` },
        counter: 1,
        nowMs: clock.nowMs(),
      };
      const { keyId, state } = await enrolHost(store, enrolment);
      return { keyId, name, counter: 2, state };
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/** @returns a report of a host that runs and confirmed one release; `more` replaces members */
export function reportOf(name: string, more: Partial<FleetReport> = {}): FleetReport {
  return {
    schema: 1,
    type: 'fleet.report',
    version: '1.0.0',
    host: name,
    labels: {},
    installId: `install-${name}`,
    bootId: 'boot-1',
    atMs: 1,
    everyMs: 300_000,
    agent: 'run',
    health: 'ok',
    findings: [],
    root: { version: 1, sha256: 'a'.repeat(64) },
    trust: [],
    freshness: 'fresh',
    bundles: [bundleAt(1)],
    groups: [],
    outcomes: [],
    ...more,
  };
}

/** @param more members that replace those of a confirmed bundle `dns` */
export function bundleAt(
  serial: number,
  more: Partial<FleetReport['bundles'][number]> = {},
): FleetReport['bundles'][number] {
  const manifest = serial.toString(16).padStart(64, '0');
  return {
    bundle: 'dns',
    channel: 'stable',
    active: { serial, manifest, sinceMs: 1, state: 'confirmed' },
    ...more,
  };
}

export interface SendMore {
  readonly counter?: number;
  readonly nonce?: string;
}

/**
 * Sends a report as if the host had signed it now.
 * @param report an object, or the bytes of the body
 * @returns the verdict of the ingest
 */
export function send(
  ingest: Ingest,
  host: BenchHost,
  report: object | Uint8Array,
  { counter = host.counter++, nonce }: SendMore = {},
): Promise<ReportVerdict> {
  const body = report instanceof Uint8Array ? report : Buffer.from(JSON.stringify(report));
  const bodyDigest = createHash('sha256').update(body).digest('hex');
  const signed = {
    kind: 'signed',
    keyId: host.keyId,
    counter,
    fleet: '',
    createdAtMs: 0,
    bodyDigest,
  } as const;
  return ingest.take({ ...signed, ...(nonce === undefined ? {} : { nonce }) }, body);
}
