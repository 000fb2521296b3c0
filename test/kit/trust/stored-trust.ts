// The trust store of a host on disk after rotations of its root, for tests of the store.
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDurableFs, type OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { openTrustStore } from '../../../src/trust/store/trust-store.js';
import { fakeClock } from '../clock/fake-clock.js';
import { tempDir } from '../disk/temp-dir.js';
import { RepositorySimulator } from '../repository/repository-simulator.js';

export const startMs = Date.UTC(2026, 10, 1);

export interface Host {
  readonly path: string;
  readonly trust: string;
  readonly repository: RepositorySimulator;
  readonly operations: string[];
  /** @returns the client of a new process on this host; faults may be injected */
  boot(observer?: OperationObserver): RepositoryClient;
  bootstrap(bytes: Uint8Array): void;
  files(): string[];
  read(name: string): Buffer;
  damage(name: string): void;
  [Symbol.dispose](): void;
}

/** @returns a host with an empty trust store; `boot` opens a client on it */
export function host(): Host {
  const dir = tempDir();
  const trust = dir.join('trust');
  const repository = new RepositorySimulator({ nowMs: startMs });
  const operations: string[] = [];
  const bootstrapRoot = dir.join('root.json');
  writeFileSync(bootstrapRoot, repository.bootstrapRoot);
  return {
    path: dir.path,
    trust,
    repository,
    operations,
    boot: (observer = {}) => {
      const fs = createDurableFs({
        before: (operation) => {
          operations.push(operation.op);
          observer.before?.(operation);
        },
      });
      const store = openTrustStore({ directory: trust, bootstrapRoot, fs });
      return openRepositoryClient({
        source: repository.source(),
        store,
        clock: fakeClock({ nowMs: startMs }),
      });
    },
    bootstrap: (bytes) => writeFileSync(bootstrapRoot, bytes),
    files: () => readdirSync(trust, { recursive: true }).map(String).sort(),
    read: (name) => readFileSync(join(trust, name)),
    damage: (name) => truncateSync(join(trust, name), Math.floor(statSync(join(trust, name)).size / 2)),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

/** @returns a host that has followed this number of root rotations, without recorded operations */
export async function rotatedHost(rotations: number): Promise<Host> {
  const it = host();
  await it.boot().refresh();
  for (let count = 0; count < rotations; count += 1) it.repository.rotate('root');
  if (rotations > 0) await it.boot().refresh();
  it.operations.length = 0;
  return it;
}
