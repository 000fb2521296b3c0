// The policy that a restore activates: the active one with some bundles replaced by their newest settled releases, as far as
// these are intact on disk, trusted, not withdrawn and not refused. Reads only.
import { basename } from 'node:path';
import { setOf } from '../../core/config/config.js';
import { isWritError, orUndefined } from '../../core/errors.js';
import { type ActiveBundle, type ActivePolicy, readBundles } from '../generations/generation-contents.js';
import { listTrees } from '../generations/generations.js';
import { isReleaseWithdrawn } from '../generations/rollback-target.js';
import { findTrustFailure } from '../generations/untrusted-releases.js';
import { expectedPermissions, verifyTree } from '../generations/verify-tree.js';
import { isSameRelease } from '../settled/bake-rules.js';
import type { Host } from '../state/host.js';
import type { AcceptedRelease } from '../state/ledger.js';
import { parseTreeName, releaseDirectoryName } from '../state/paths.js';
import { findRefusal } from '../state/refusal-rules.js';

export type PolicyBundles = ReadonlyMap<string, ActiveBundle>;

/**
 * @param leaving names of the bundles with an active release that is to be replaced; their sets are replaced with them
 * @returns the bundles of the policy to go back to; undefined where one of them has no suitable settled release
 */
export async function findSettledPolicy(
  host: Host,
  active: ActivePolicy,
  leaving: readonly string[],
): Promise<PolicyBundles | undefined> {
  const policy = new Map(active.bundles);
  const done = new Set<string>();
  for (const bundle of leaving) {
    if (done.has(bundle)) continue;
    const set = setOf(host.config, bundle).filter((name) => active.bundles.has(name));
    const found = await newestSuitable(host, active, set);
    if (found === undefined) return undefined;
    for (const [name, one] of found) {
      policy.set(name, one);
      done.add(name);
    }
  }
  return policy;
}

/** The newest combination of the set that settled together. */
async function newestSuitable(
  host: Host,
  active: ActivePolicy,
  set: readonly string[],
): Promise<Map<string, ActiveBundle> | undefined> {
  const { settledReleases = {} } = host.ledger.read();
  const [first = ''] = set;
  for (const { generation } of settledReleases[first] ?? []) {
    const together = set.map((name) =>
      (settledReleases[name] ?? []).find((one) => one.generation === generation),
    );
    const bundles = new Map<string, ActiveBundle>();
    for (const [index, name] of set.entries()) {
      const release = together[index];
      const found = release && (await suitableBundle(host, name, release));
      if (found !== undefined) bundles.set(name, found);
    }
    if (bundles.size === set.length && !isActive(active, set, together)) return bundles;
  }
  return undefined;
}

/** Nothing is gone back to by going to what is active. */
function isActive(
  { bundles }: ActivePolicy,
  set: readonly string[],
  releases: readonly (AcceptedRelease | undefined)[],
): boolean {
  return set.every((name, index) => {
    const [active, other] = [bundles.get(name)?.record.release, releases[index]];
    if (active === undefined || other === undefined) return false;
    return isSameRelease({ serial: active.serial, manifestDigest: active.manifest.digest }, other);
  });
}

/** @returns the release with its tree, verified in full; undefined where it may not come back */
export async function suitableBundle(
  host: Host,
  bundle: string,
  { serial, manifestDigest }: AcceptedRelease,
): Promise<ActiveBundle | undefined> {
  const name = releaseDirectoryName(serial, manifestDigest);
  const found = settledBundle(host, bundle, name);
  if (found === undefined) return undefined;
  const { channel } = found.record.release;
  if (findTrustFailure(host, bundle, name) !== undefined) return undefined;
  if (isReleaseWithdrawn(host, { bundle, channel, serial })) return undefined;
  if (findRefusal(host.refusals.read().refusals, bundle, manifestDigest) !== undefined) return undefined;
  try {
    const options = { ...expectedPermissions(host, bundle), contents: 'digests' } as const;
    return (await verifyTree(found.entry.treePath, found.manifest, options)).length === 0 ? found : undefined;
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error, bundle, serial }, 'a release that could come back cannot be read');
    return undefined;
  }
}

/** The newest tree of a release, whichever generation it was made for. */
function settledBundle({ paths }: Host, bundle: string, release: string): ActiveBundle | undefined {
  const trees = listTrees(paths).flatMap(({ bundle: owner, path }) => {
    const tree = owner === bundle ? parseTreeName(basename(path)) : undefined;
    return tree?.release === release ? [{ tree, path }] : [];
  });
  const newest = trees.sort((one, other) => other.tree.generation - one.tree.generation)[0];
  if (newest === undefined) return undefined;
  const { tree, path: treePath } = newest;
  const entry = { bundle, tree, treeDirectory: basename(treePath), treePath };
  const policy = orUndefined(() => readBundles(paths, { number: 0, path: '', entries: [entry] }));
  return policy?.get(bundle);
}
