// What a report needs beside the status: digests of what is active and of the trusted root, and who uses what. Reads the
// records of the host; a part that cannot be read is left out, for the status says what is wrong with it.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { orUndefined } from '../../core/errors.js';
import { digestHex } from '../../core/names.js';
import { readSmallFile } from '../../platform/read-file.js';
import { readActiveReleases } from '../generations/generation-contents.js';
import type { Host } from '../state/host.js';
import type { ReportFacts } from './make-report.js';

const maxRootBytes = 16_000_000;

type HostFacts = Pick<ReportFacts, 'manifests' | 'rootDigest' | 'users'>;

export interface FactsReader {
  read(
    host: Host,
    at: { readonly generation: number | undefined; readonly rootVersion: number | undefined },
  ): HostFacts;
}

/** A generation and a version of a root never change: each is read once. */
export function createFactsReader(): FactsReader {
  let manifests:
    | { readonly generation: number | undefined; readonly digests: ReadonlyMap<string, string> }
    | undefined;
  let root: { readonly version: number | undefined; readonly digest: string | undefined } | undefined;
  return {
    read: (host, { generation, rootVersion }) => {
      if (manifests?.generation !== generation) manifests = { generation, digests: manifestsOf(host) };
      if (root?.version !== rootVersion || root?.digest === undefined)
        root = { version: rootVersion, digest: rootDigest(host) };
      return {
        manifests: manifests?.digests ?? new Map(),
        rootDigest: root?.digest,
        users: usersOf(host),
      };
    },
  };
}

function manifestsOf({ paths }: Host): ReadonlyMap<string, string> {
  const active = orUndefined(() => readActiveReleases(paths));
  const digests = [...(active?.records ?? [])].map(
    ([bundle, { release }]) => [bundle, digestHex(release.manifest.digest)] as const,
  );
  return new Map(digests);
}

function rootDigest({ paths }: Host): string | undefined {
  const verdict = readSmallFile(join(paths.trust, 'root.json'), { maxBytes: maxRootBytes });
  if (verdict.kind !== 'read') return undefined;
  return createHash('sha256').update(verdict.bytes).digest('hex');
}

/** Without a probe only an answer that comes behind the effect proves anything (docs/drivers.md). */
function usersOf({ groups }: Host): ReportFacts['users'] {
  return groups.map(({ config: { name, uses, probe }, driver }) => {
    const canConfirm = probe !== undefined || driver?.verdictClass === 'true';
    return { group: name, uses, proof: canConfirm ? 'can confirm' : 'none' };
  });
}
