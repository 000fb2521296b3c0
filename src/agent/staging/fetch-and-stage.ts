// The steps fetch, stage, verify and check: from selections to a candidate generation that every check accepts.
// Everything happens in the cycle's staging directory; the active policy is not touched. A bundle that fails
// drops out with its set, and what is left is checked again as a whole.
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { lookUpGroup } from '../../platform/users/group-id.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import type { CycleStory } from '../job/progress.js';
import { holdBackSets, refuse, type Selection, type Taken, taken } from '../select/selection.js';
import type { Host } from '../state/host.js';
import type { StagingOptions } from './candidate.js';
import { fetchArchive, type VerifiedArchive } from './fetch-archive.js';
import { type StagedBundle, stageBundle } from './stage-bundle.js';

export interface FetchedArchives {
  /** Those that failed are held back. */
  readonly selections: Selection[];
  /** By bundle. */
  readonly archives: ReadonlyMap<string, VerifiedArchive>;
  /** Mirrors that failed, where another one had the archive. */
  readonly mirrorFailures: readonly MirrorFailure[];
}

/** The `fetch` step. */
export async function fetchAll(
  host: Host,
  story: CycleStory,
  selections: readonly Selection[],
  options: StagingOptions,
): Promise<FetchedArchives> {
  const archives = new Map<string, VerifiedArchive>();
  const mirrorFailures: MirrorFailure[] = [];
  const totalBytes = taken(selections).reduce((sum, one) => sum + one.target.length, 0);
  let doneBefore = 0;
  let claimedBytes = 0;
  const tried = await tryEach(selections, async ({ bundle, target }) => {
    const archive = await fetchArchive({
      client: host.client,
      target,
      directory: makeDirectory(host, options.staging, `fetch-${bundle.name}`),
      fs: host.durable,
      limits: host.config.limits,
      claimedBytes,
      signal: options.signal,
      onProgress: (doneBytes) => story.progress('fetch', doneBefore + doneBytes, totalBytes),
      onMirrorFailed: (failure) => mirrorFailures.push(failure),
    });
    archives.set(bundle.name, archive);
    doneBefore += target.length;
    // Its tree is at least as large.
    claimedBytes += target.length;
  });
  return { selections: holdBackSets(tried, host.config.together), archives, mirrorFailures };
}

export interface StagedTrees {
  /** Those that failed are held back. */
  readonly selections: Selection[];
  /** By bundle. */
  readonly staged: ReadonlyMap<string, StagedBundle>;
}

/** The `stage` step: unpacks and verifies each archive into a tree of its own. */
export async function stageAll(
  host: Host,
  selections: readonly Selection[],
  archives: ReadonlyMap<string, VerifiedArchive>,
  options: StagingOptions,
): Promise<StagedTrees> {
  const staged = new Map<string, StagedBundle>();
  const tried = await tryEach(selections, async ({ bundle }) => {
    const archive = archives.get(bundle.name);
    if (archive === undefined) throw new WritError('INTERNAL', `no archive of ${bundle.name} was fetched`);
    const groupId = bundle.group === undefined ? undefined : lookUpGroup(bundle.group);
    const tree = await stageBundle({
      archive,
      directory: join(options.staging, `tree-${bundle.name}`),
      fs: host.durable,
      limits: host.config.limits,
      mode: bundle.mode,
      mtimeSeconds: options.mtimeSeconds,
      signal: options.signal,
      ...(groupId === undefined ? {} : { groupId }),
    });
    staged.set(bundle.name, tree);
  });
  return { selections: holdBackSets(tried, host.config.together), staged };
}

export function makeDirectory(host: Host, staging: string, name: string): string {
  const path = join(staging, name);
  host.durable.makeDirectory('fetch.directory', path, 0o700);
  return path;
}

/** Runs `act` for each taken selection; what throws keeps its active release, with the error as its result. */
async function tryEach(
  selections: readonly Selection[],
  act: (one: Taken) => Promise<void>,
): Promise<Selection[]> {
  const results: Selection[] = [];
  for (const selection of selections) {
    results.push(selection.kind === 'keep' ? selection : await tryOne(selection, act));
  }
  return results;
}

async function tryOne(selection: Taken, act: (one: Taken) => Promise<void>): Promise<Selection> {
  try {
    await act(selection);
    return selection;
  } catch (error) {
    return refuse(selection, error);
  }
}
