// Fetches one archive with the partial downloads of a host, without the other parts of a host.
import * as fs from 'node:fs';
import type { PartialsHost } from '../../../src/agent/partials/partials.js';
import type { ArchiveFetchOptions } from '../../../src/agent/staging/fetch-archive.js';
import { hostPaths } from '../../../src/agent/state/paths.js';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import { createDurableFs, type DurableFs } from '../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../clock/fake-clock.js';
import type { TempDir } from '../disk/temp-dir.js';
import { signedTarget } from '../repository/archive-builder.js';
import { memorySource } from '../repository/memory-source.js';

/** The bytes that are signed and served. */
export const archive: Buffer = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));

export interface FetchBench {
  readonly options: ArchiveFetchOptions & { readonly partials: PartialsHost };
  /** The directory of partial downloads. */
  readonly partials: string;
  /** The offsets in bytes that `onResume` received. */
  readonly resumedFrom: number[];
}

/** @param durable file system of the fetch and of its partial downloads */
export function fetchBench(dir: TempDir, durable: DurableFs = createDurableFs()): FetchBench {
  const [state, policy, run] = [dir.path, dir.join('policy'), dir.join('run')];
  const paths = hostPaths({ state, policy, run, socket: '' });
  fs.mkdirSync(paths.partials, { mode: 0o700, recursive: true });
  fs.mkdirSync(paths.staging, { recursive: true });
  const limits = defaultArchiveLimits;
  const partials = { paths, durable, clock: fakeClock(), log: silentLog(), config: { limits } };
  const resumedFrom: number[] = [];
  const target = signedTarget(archive, Buffer.from('{}'));
  return {
    options: {
      ...{ client: memorySource(archive), target, directory: paths.staging, fs: durable, partials, limits },
      onResume: (fromByte) => void resumedFrom.push(fromByte),
    },
    partials: paths.partials,
    resumedFrom,
  };
}
