// Finds the groups that a new generation affects: those that use a bundle with a changed path that `when` matches. Compares
// manifests and no files. Pure.
import picomatch from '#picomatch';
import type { WorkerGroupConfig } from '../config/config.js';
import { diffManifests, type Manifest } from './manifest.js';
import type { ReleaseInfo } from './release.js';
import { unstamped } from './stamps.js';

/** The manifest and the stamps of each bundle, by name. */
export type PolicyFiles = ReadonlyMap<string, BundleFiles>;

export interface BundleFiles {
  readonly manifest: Manifest;
  readonly stamped: ReleaseInfo['stamped'] | undefined;
}

/** @returns the paths in which two policies differ, as `bundle:path`; a difference of stamps alone is none */
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
 * @param changed result of changedPaths
 * @param bundles names of bundles that count as changed, whatever `when` contains
 * @returns true if the group uses a changed bundle and, if it has `when`, a changed path matches
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

/** @returns true if a running worker of the group cannot load the change without a restart */
export function needsRestart(
  group: Pick<WorkerGroupConfig, 'uses' | 'restartWhen'>,
  changed: readonly string[],
): boolean {
  const used = changed.filter((path) => group.uses.includes(bundleOf(path)));
  return matchesOne(used, group.restartWhen ?? [], group.uses);
}

/** Globs match `bundle/path`, because the matcher takes a colon as part of a file name. */
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
