// Single requests for metadata, counted, each with its bound. Has the names of metadata files in a repository. The caller verifies
// the bytes.
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
 * Fetches a file that other metadata lists: with its version in the name if snapshots are consistent, and with its signed length as
 * the bound.
 * @param judge verifies the bytes; its exceptions get the URL of the file
 * @throws WritError METADATA_MISSING, and each code of the transport
 */
export async function fetchListed<T>(
  file: ListedFile,
  requester: Requester,
  judge: (bytes: Buffer) => T,
): Promise<T> {
  const { set, role, meta } = file;
  const consistent = set.root.signed.consistent_snapshot === true;
  const name = consistent ? `${meta.version}.${role}.json` : `${role}.json`;
  // The signed length may only lower the bound: a stolen key must not exhaust the memory.
  const maxBytes = Math.min(meta.length ?? file.maxBytes, file.maxBytes);
  return requester.naming(name, async () =>
    judge(requireFound(await requester.fetch(name, { maxBytes }), role, name).bytes),
  );
}

export interface Requester {
  fetch(name: string, options: FetchOptions): Promise<FetchVerdict>;
  /** @throws the exceptions of `act`, with the URL of the file */
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

/**
 * @returns the found file
 * @throws WritError METADATA_MISSING where the server does not have it
 */
export function requireFound(verdict: FetchVerdict, role: string, name: string): FoundMetadata {
  if (verdict.kind === 'found') return verdict;
  const { redirectedTo } = verdict.kind === 'absent' ? verdict : {};
  const where =
    redirectedTo === undefined ? '' : `: the server sends us to ${redirectedTo}, where nothing is`;
  throw new WritError('METADATA_MISSING', `the repository has no ${name}${where}`, {
    facts: { role, name, redirectedTo },
  });
}
