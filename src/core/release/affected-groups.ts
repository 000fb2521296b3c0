// Which worker groups a new generation concerns: those that use a bundle of which a path in `when` changed.
// Pure except for the glob matcher; compares manifests, never files.
import picomatch from '#picomatch';
import type { WorkerGroupConfig } from '../config/config.js';
import { diffManifests, type Manifest } from './manifest.js';
import type { ReleaseInfo } from './release.js';
import { unstamped } from './stamps.js';

/** Bundles by name, with what is in each, and what its publisher stamped. */
export type PolicyFiles = ReadonlyMap<string, BundleFiles>;

export interface BundleFiles {
  readonly manifest: Manifest;
  readonly stamped: ReleaseInfo['stamped'] | undefined;
}

/** @returns the paths in which two policies differ, as `bundle:path`; what only a stamp changed is the same. */
export function changedPaths(before: PolicyFiles, after: PolicyFiles): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((bundle) => {
    const diff = diffManifests(filesOf(before.get(bundle)), filesOf(after.get(bundle)));
    return [...diff.added, ...diff.removed, ...diff.changed].map((path) => `${bundle}:${path}`);
  });
}

function filesOf(bundle: BundleFiles | undefined): Manifest {
  return bundle === undefined ? { files: [] } : unstamped(bundle.manifest, bundle.stamped?.stamps);
}

/**
 * @param changed paths as changedPaths gives them
 * @param bundles names of those that count as changed whatever `when` says
 * @returns true when the group uses a changed bundle and, if it has `when`, a changed path matches
 */
export function affectsGroup(
  group: Pick<WorkerGroupConfig, 'uses' | 'when' | 'restartWhen'>,
  changed: readonly string[],
  bundles: readonly string[] = [],
): boolean {
  if (group.uses.some((name) => bundles.includes(name))) return true;
  const used = changed.filter((path) => group.uses.includes(bundleOf(path)));
  if (group.when.length === 0) return used.length > 0;
  return matchesOne(used, [...group.when, ...(group.restartWhen ?? [])], group.uses);
}

/** @returns true when what changed is nothing that a running worker of the group takes over */
export function needsRestart(
  group: Pick<WorkerGroupConfig, 'uses' | 'restartWhen'>,
  changed: readonly string[],
): boolean {
  const used = changed.filter((path) => group.uses.includes(bundleOf(path)));
  return matchesOne(used, group.restartWhen ?? [], group.uses);
}

/** Globs match on `bundle/path`: a colon would be part of a file name to the matcher. */
function matchesOne(paths: readonly string[], globs: readonly string[], uses: readonly string[]): boolean {
  const matchers = globs.map((glob) => picomatch(qualified(glob, uses), { dot: true }));
  return paths.some((path) => matchers.some((matches) => matches(path.replace(':', '/'))));
}

function bundleOf(path: string): string {
  return path.slice(0, path.indexOf(':'));
}

function qualified(glob: string, uses: readonly string[]): string {
  const match = /^([a-z0-9][a-z0-9._-]{0,63}):(.*)$/.exec(glob);
  if (match?.[1] && match[2] !== undefined && uses.includes(match[1])) return `${match[1]}/${match[2]}`;
  return `${uses.length === 1 ? uses[0] : '*'}/${glob}`;
}
