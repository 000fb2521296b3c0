// A host as in its reports to a fleet, of the usual size: three bundles, one group of two workers, four labels. The code of the
// agent makes its report from a status; the caller chooses the numbers in it.
import { type HostIdentity, makeReport, type ReportFacts } from '../../src/agent/fleet/make-report.js';
import type { FleetReport } from '../../src/core/fleet/report.js';
import type { StatusReport } from '../../src/core/status/status.js';
import { writVersion } from '../../src/core/version.js';

export interface SampleHost {
  readonly number: number;
  readonly atMs: number;
  readonly everyMs: number;
  /** Of the first of its bundles; the others stand. */
  readonly serial: number;
}

const dayMs = 86_400_000;
const bundles = ['dns-edge', 'access', 'limits'] as const;
const group = { group: 'resolvers', workers: 2, confirmed: 2, min: 1 } as const;
const sites = ['fra', 'ams', 'waw', 'lis'] as const;
export const sampleRoot = { version: 3, sha256: 'a'.repeat(64) } as const;

export function identityOfSample(number: number): HostIdentity {
  const name = String(number).padStart(7, '0');
  const labels = {
    site: sites[number % 4] ?? '',
    role: 'edge',
    ring: String(number % 10),
    rack: `r${number % 40}`,
  };
  return { installId: `0190-${name}`, bootId: `boot-${name}`, host: `edge-${name}.example.net`, labels };
}

export function sampleReport(sample: SampleHost, more: Partial<ReportFacts> = {}): FleetReport {
  const { number, everyMs, serial } = sample;
  return makeReport(sampleStatus(sample), {
    ...{ identity: identityOfSample(number), everyMs, detail: 'codes' },
    manifests: new Map(bundles.map((bundle, at) => [bundle, manifestOf(at === 0 ? serial : 7)])),
    rootDigest: sampleRoot.sha256,
    users: [{ group: group.group, uses: bundles, proof: 'can confirm' }],
    ...{ sender: 'agent', outcomes: [], dropped: 0, ...more },
  });
}

function manifestOf(serial: number): string {
  return serial.toString(16).padStart(64, '0');
}

export function sampleStatus({ number, atMs, serial }: SampleHost): StatusReport {
  const { host, labels } = identityOfSample(number);
  const activatedAtMs = Math.floor(atMs / dayMs) * dayMs;
  return {
    ...{ schema: 1, type: 'status.result', version: writVersion, host, labels, atMs, agent: 'run' },
    ...{ confirmed: true, generation: serial, activatedAtMs },
    bundles: bundles.map((bundle, at) => {
      const known = { serial: at === 0 ? serial : 7, revision: `r${serial}` };
      return { bundle, channel: 'stable', ...known, activatedAtMs, server: known };
    }),
    workers: [],
    groups: [{ ...group, findings: [] }],
    freshness: { state: 'fresh', lastContactAtMs: atMs, verifiedAtMs: atMs },
    trust: ['root', 'timestamp', 'snapshot', 'targets'].map((role) => {
      return { role, version: 3, expiresAtMs: activatedAtMs + 90 * dayMs, signedAtMs: activatedAtMs };
    }),
    ...{ mirrors: [], refusals: [], olderRefusals: 0, holds: [], problems: [] },
  };
}
