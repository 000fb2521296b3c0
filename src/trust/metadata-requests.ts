// Single requests for metadata: one at a time, counted, each under its bound. Owns the names under which metadata
// is in a repository; what the bytes are worth is not known here.
import { WritError } from '../core/errors.js';
import type { TrustedSet } from '../core/tuf/trusted-set.js';
import type { MetaFile } from '../core/tuf/tuf-metadata.js';
import { namingUrl } from './sources/fetched-url.js';
import type { FetchOptions, FetchVerdict, RepositorySource } from './sources/source.js';
import { encodePath } from './sources/source-path.js';

export interface ListedFile {
  readonly set: TrustedSet;
  readonly role: string;
  readonly meta: MetaFile;
  readonly maxBytes: number;
}

/**
 * Fetches what other metadata names: under its version where snapshots are consistent, under its length if signed.
 * @param judge what its bytes are worth; what it throws gets the URL of the file
 * @throws WritError METADATA_MISSING, and every code of the transport
 */
export async function fetchListed<T>(
  file: ListedFile,
  requester: Requester,
  judge: (bytes: Buffer) => T,
): Promise<T> {
  const { set, role, meta } = file;
  const consistent = set.root.signed.consistent_snapshot === true;
  const name = consistent ? `${meta.version}.${role}.json` : `${role}.json`;
  // The signed length may only make the bound tighter: a stolen key must not fill the memory.
  const maxBytes = Math.min(meta.length ?? file.maxBytes, file.maxBytes);
  return requester.naming(name, async () =>
    judge(requireFound(await requester.fetch(name, { maxBytes }), role, name).bytes),
  );
}

export interface Requester {
  fetch(name: string, options: FetchOptions): Promise<FetchVerdict>;
  /** @throws what `act` throws; of a fetched file with its URL */
  naming<T>(name: string, act: () => T | Promise<T>): Promise<T>;
  requests(): number;
}

/** @param source one mirror; its requests are counted for the result of a refresh */
export function createRequester(source: RepositorySource, signal: AbortSignal | undefined): Requester {
  let requests = 0;
  const naming: Requester['naming'] = (name, act) =>
    namingUrl(`${source.location}${encodePath('metadata', name)}`, act);
  return {
    fetch: (name, options) => {
      requests += 1;
      return naming(name, () => source.fetch(encodePath('metadata', name), { ...options, signal }));
    },
    naming,
    requests: () => requests,
  };
}

export type FoundMetadata = Extract<FetchVerdict, { kind: 'found' }>;

/** @throws WritError METADATA_MISSING */
export function requireFound(verdict: FetchVerdict, role: string, name: string): FoundMetadata {
  if (verdict.kind === 'found') return verdict;
  const { redirectedTo } = verdict.kind === 'absent' ? verdict : {};
  const where =
    redirectedTo === undefined ? '' : `: the server sends us to ${redirectedTo}, where nothing is`;
  throw new WritError('METADATA_MISSING', `the repository has no ${name}${where}`, {
    facts: { role, name, redirectedTo },
  });
}
