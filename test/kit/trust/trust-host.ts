// The trust of a host without its other parts: a state directory, a bootstrap root, and clients of a simulated repository,
// one for each process run.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultMetadataLimits, type MetadataLimits } from '../../../src/core/limits.js';
import { createDurableFs, type OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import type { Clock } from '../../../src/platform/time/clock.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { openTrustStore } from '../../../src/trust/store/trust-store.js';
import { fakeClock } from '../clock/fake-clock.js';
import { type TempDir, tempDir } from '../disk/temp-dir.js';

export interface TrustHost extends Disposable {
  /** The directory trust/ of the state directory. */
  readonly trust: string;
  /** Starts a process run: a new client with the files in trust/. */
  boot(source: RepositorySource, observer?: OperationObserver, limits?: MetadataLimits): RepositoryClient;
  bootstrap(bytes: Uint8Array): void;
  /** @returns the content of all files below trust/ by path, including temporary ones */
  image(): TrustImage;
  /** Replaces all files in trust/ by these. */
  restore(image: TrustImage): void;
  /** @returns the version of a stored file; 0 if it is missing or malformed */
  storedVersion(role: string): number;
}

export type TrustImage = ReadonlyMap<string, Buffer>;

/** @example using host = trustHost(repository.bootstrapRoot, nowMs); */
export function trustHost(bootstrapRoot: Uint8Array, nowMs: number): TrustHost {
  const dir = tempDir();
  writeFileSync(dir.join('root.json'), bootstrapRoot);
  return trustHostAt(dir, fakeClock({ nowMs }));
}

/** @param dir has the bootstrap root as root.json; disposal of the host removes it */
export function trustHostAt(dir: TempDir, clock: Clock): TrustHost {
  const trust = dir.join('trust');
  const rootPath = dir.join('root.json');
  return {
    trust,
    boot: (source, observer = {}, limits = defaultMetadataLimits) => {
      const store = openTrustStore({
        directory: trust,
        bootstrapRoot: rootPath,
        fs: createDurableFs(observer),
      });
      return openRepositoryClient({ source, store, clock, limits });
    },
    bootstrap: (bytes) => writeFileSync(rootPath, bytes),
    image: () => readImage(trust),
    restore: (image) => {
      rmSync(trust, { recursive: true, force: true });
      for (const [path, bytes] of image) {
        mkdirSync(join(trust, path, '..'), { recursive: true, mode: 0o700 });
        writeFileSync(join(trust, path), bytes, { mode: 0o600 });
      }
    },
    storedVersion: (role) => versionIn(join(trust, `${role}.json`)),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

function readImage(trust: string): TrustImage {
  if (!existsSync(trust)) return new Map();
  const entries = readdirSync(trust, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(trust.length + 1), readFileSync(path)] as const;
    }),
  );
}

function versionIn(path: string): number {
  try {
    return Number(JSON.parse(readFileSync(path, 'utf8')).signed.version);
  } catch {
    return 0;
  }
}
