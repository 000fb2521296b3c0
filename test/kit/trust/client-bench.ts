// A client of a simulated repository with recorded writes, for tests of a refresh.
import type { MetadataLimits } from '../../../src/core/limits.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { memoryTrustStore, type TrustStore } from '../../../src/trust/store/trust-store.js';
import { fakeClock } from '../clock/fake-clock.js';
import { RepositorySimulator, type SimulatorOptions } from '../repository/repository-simulator.js';

export const startMs = Date.UTC(2026, 10, 1);
export const dayMs = 86_400_000;

interface Bench {
  readonly clock: ReturnType<typeof fakeClock>;
  readonly repository: RepositorySimulator;
  readonly store: TrustStore & { readonly writes: string[] };
  readonly client: RepositoryClient;
  /** @returns the client of a second process with the same store */
  restart(): RepositoryClient;
}

/** @returns a client that has not refreshed; `restart` makes another one with the same store */
export function bench(options: Partial<SimulatorOptions> = {}, limits?: MetadataLimits): Bench {
  const clock = fakeClock({ nowMs: startMs });
  const repository = new RepositorySimulator({ nowMs: startMs, ...options });
  const store = recordWrites(memoryTrustStore(repository.bootstrapRoot));
  const restart = (): RepositoryClient =>
    openRepositoryClient({ source: repository.source(), store, clock, ...(limits ? { limits } : {}) });
  return { clock, repository, store, client: restart(), restart };
}

function recordWrites(store: TrustStore): TrustStore & { readonly writes: string[] } {
  const writes: string[] = [];
  return {
    ...store,
    writes,
    saveRoot: (version, bytes) => {
      writes.push(`root ${version}`);
      store.saveRoot(version, bytes);
    },
    saveFile: (role, bytes) => {
      writes.push(role);
      store.saveFile(role, bytes);
    },
  };
}

/** @returns the trusted version of the role; undefined before the first refresh */
export function version(
  client: RepositoryClient,
  role: 'root' | 'timestamp' | 'snapshot' | 'targets',
): number | undefined {
  return client.status()?.roles[role]?.version;
}
