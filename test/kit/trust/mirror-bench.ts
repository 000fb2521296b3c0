// A client with two mirrors of one simulated repository, each of which a test can change.
import { defaultTransportLimits, type TransportLimits } from '../../../src/core/limits.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { memoryTrustStore, type TrustStore } from '../../../src/trust/store/trust-store.js';
import { type FakeClock, fakeClock } from '../clock/fake-clock.js';
import { RepositorySimulator } from '../repository/repository-simulator.js';
import { type SimulatedMirror, simulatedMirror, upload } from '../repository/simulated-mirror.js';

export const startMs = Date.UTC(2026, 10, 1);
export const dayMs = 86_400_000;
export const minuteMs = 60_000;

export interface Bench {
  readonly clock: FakeClock;
  readonly repository: RepositorySimulator;
  readonly store: TrustStore;
  readonly a: SimulatedMirror;
  readonly b: SimulatedMirror;
  readonly client: RepositoryClient;
  /** Copies the current repository to both mirrors. */
  upload(...mirrors: readonly SimulatedMirror[]): void;
}

/** @returns two mirrors of a repository that published twice, and a client that trusts the second version */
export async function bench(transport: Partial<TransportLimits> = {}): Promise<Bench> {
  const clock = fakeClock({ nowMs: startMs });
  const repository = new RepositorySimulator({ nowMs: startMs });
  repository.publish();
  const store = memoryTrustStore(repository.bootstrapRoot);
  const a = simulatedMirror('https://a/', repository.files);
  const b = simulatedMirror('https://b/', repository.files);
  const limits = { ...defaultTransportLimits, ...transport };
  const client = openRepositoryClient({ source: a, mirrors: [b], store, clock, transport: limits });
  await client.refresh();
  a.takeRequests();
  return { clock, repository, store, a, b, client, upload: (...to) => upload(repository.files, to) };
}

/** @returns the trusted version of the role; undefined before the first refresh */
export function version(
  client: RepositoryClient,
  role: 'root' | 'timestamp' | 'targets',
): number | undefined {
  return client.status()?.roles[role]?.version;
}

/** @returns the mirror of a refresh, then each failed mirror with its error code */
export async function refreshed(client: RepositoryClient): Promise<readonly [string, ...string[]]> {
  const { mirror, failures } = await client.refresh();
  return [mirror, ...failures.map((one) => `${one.mirror} ${one.error.code}`)];
}
