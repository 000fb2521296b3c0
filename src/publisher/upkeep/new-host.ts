// A repository on disk as a host meets it that has nothing yet: our own client in memory, from a first root. Nothing
// is written, and no archive is read.
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../platform/time/clock.js';
import { openRepositoryClient } from '../../trust/repository-client.js';
import { overlaySource } from '../../trust/sources/overlay-source.js';
import { openRepositorySource } from '../../trust/sources/repository-source.js';
import { memoryTrustStore } from '../../trust/store/trust-store.js';

export interface NewHost {
  /** The repository. */
  readonly directory: string;
  /** The root that the host is shipped with. */
  readonly anchor: Uint8Array;
  /** Files that do not lie there yet, by path, as `metadata/timestamp.json`. */
  readonly overlay?: ReadonlyMap<string, Uint8Array>;
  readonly clock: Clock;
}

/** @throws WritError whatever the host would say: METADATA_*, SIGNATURE_*, ROOT_CHAIN_TOO_LONG, DOWNLOAD_TOO_LARGE */
export async function refreshAsNewHost({
  directory,
  anchor,
  overlay = new Map(),
  clock,
}: NewHost): Promise<void> {
  const files = openRepositorySource(pathToFileURL(directory).href, { clock, version: 'self-check' });
  const source = overlaySource(files, overlay);
  try {
    const client = openRepositoryClient({ source, store: memoryTrustStore(anchor), clock });
    await client.refresh({ conditional: 'no' });
  } finally {
    await source.close();
  }
}
