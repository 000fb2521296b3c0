// Reads the members of a report that are not in the status: digests of the active manifests and of the trusted root, and the
// bundles of each group. An unreadable part is left out, because the status reports it as a problem.
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

/** Creates a reader that caches digests, because a generation and a root version never change. */
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

/** Without a probe only an answer that the worker sends after the effect confirms a generation (docs/drivers.md). */
function usersOf({ groups }: Host): ReportFacts['users'] {
  return groups.map(({ config: { name, uses, probe }, driver }) => {
    const canConfirm = probe !== undefined || driver?.verdictClass === 'true';
    return { group: name, uses, proof: canConfirm ? 'can confirm' : 'none' };
  });
}
