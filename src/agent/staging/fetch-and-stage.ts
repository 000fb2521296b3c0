// The steps fetch and stage: from selections to verified trees, in the staging directory of the cycle. They never change the active
// policy. A bundle that fails is excluded with its `together` set. After a failed delta or retained copy, the same cycle fetches
// the archive.
import { join } from 'node:path';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { resolveGroup } from '../../platform/users/group-id.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import type { KeptFile } from '../generations/kept-copies.js';
import type { CycleProgress } from '../job/progress.js';
import { dropPartials } from '../partials/partials.js';
import { holdBackSets, refuse, type Selection, type Taken, taken } from '../select/selection.js';
import type { Host } from '../state/host.js';
import { isDiskFull } from '../state/state-file.js';
import { withArchiveFallback } from './archive-fallback.js';
import type { StagingOptions } from './candidate.js';
import { type ArchiveFetchOptions, fetchArchive, fetchDelta, type VerifiedArchive } from './fetch-archive.js';
import { chooseFetchStrategy, countBytesToFetch, type FetchStrategy } from './fetch-strategy.js';
import { rebuildRelease } from './rebuild-release.js';
import { stageBundle } from './stage-bundle.js';
import { stageDelta } from './stage-delta.js';
import type { StagedBundle } from './staged-bundle.js';

type StrategyOf<Kind extends FetchStrategy['kind']> = Extract<FetchStrategy, { kind: Kind }>;

/** The fetched files of one release, with the strategy that fetched them. */
export type FetchedRelease =
  | { readonly strategy: StrategyOf<'archive'>; readonly archive: VerifiedArchive }
  | { readonly strategy: StrategyOf<'delta'>; readonly delta: KeptFile }
  | { readonly strategy: StrategyOf<'retained'> };

/** The warnings of a step. */
export interface FetchWarnings {
  /** Mirrors that failed before another mirror sent the file. */
  readonly mirrorFailures: readonly MirrorFailure[];
  /** Failed strategies. */
  readonly warnings: readonly Problem[];
}

export interface FetchedReleases extends FetchWarnings {
  /** A selection that failed keeps the active release. */
  readonly selections: Selection[];
  /** By bundle: offset at which a partial download continued. */
  readonly resumedFrom: ReadonlyMap<string, number>;
  /** By bundle. */
  readonly fetched: ReadonlyMap<string, FetchedRelease>;
}

const archiveStrategy: StrategyOf<'archive'> = { kind: 'archive' };

/** The `fetch` step: fetches the archive or delta of each selection. */
export async function fetchSelections(
  host: Host,
  cycleProgress: CycleProgress,
  selections: readonly Selection[],
  options: StagingOptions,
): Promise<FetchedReleases> {
  const fetched = new Map<string, FetchedRelease>();
  const resumedFrom = new Map<string, number>();
  const [mirrorFailures, warnings]: [MirrorFailure[], Problem[]] = [[], []];
  const strategies = new Map(
    taken(selections).map((one) => [one.target, chooseFetchStrategy(host, one, options)]),
  );
  const totalBytes = [...strategies].reduce(
    (sum, [target, strategy]) => sum + countBytesToFetch(strategy, target),
    0,
  );
  let doneBefore = 0;
  let claimedBytes = 0;
  const results = await forEachTaken(host, selections, async (one) => {
    const { bundle, target } = one;
    const fetchOptions: ArchiveFetchOptions = {
      ...createFetchOptions(host, one, { ...options, mirrorFailures }),
      directory: makeDirectory(host, options.staging, `fetch-${bundle.name}`),
      claimedBytes,
      onProgress: (doneBytes) => cycleProgress.reportBytes('fetch', doneBefore + doneBytes, totalBytes),
      onResume: (fromByte) => {
        cycleProgress.resumes(fromByte);
        resumedFrom.set(bundle.name, fromByte);
      },
    };
    const fetchAsArchive = async () => {
      resumedFrom.delete(bundle.name);
      return { strategy: archiveStrategy, archive: await fetchArchive(fetchOptions) };
    };
    const strategy = strategies.get(target) ?? archiveStrategy;
    const fetchAsDelta = async (by: StrategyOf<'delta'>): Promise<FetchedRelease> => {
      return { strategy: by, delta: await fetchDelta({ ...fetchOptions, delta: by.delta }) };
    };
    const release =
      strategy.kind === 'delta'
        ? await withArchiveFallback<FetchedRelease>(
            { host, target, warnings },
            () => fetchAsDelta(strategy),
            fetchAsArchive,
          )
        : strategy.kind === 'retained'
          ? { strategy }
          : await fetchAsArchive();
    fetched.set(bundle.name, release);
    doneBefore += countBytesToFetch(strategy, target);
    // Reserves space for its tree, which is at least as large as its archive.
    claimedBytes += target.length;
  });
  const remaining = holdBackSets(results, host.config.together);
  return { selections: remaining, fetched, resumedFrom, mirrorFailures, warnings };
}

export interface StagedTrees {
  /** A selection that failed keeps the active release. */
  readonly selections: Selection[];
  /** By bundle. */
  readonly staged: ReadonlyMap<string, StagedBundle>;
}

/** The `stage` step: makes and verifies the tree of each release. */
export async function stageSelections(
  host: Host,
  cycleProgress: CycleProgress,
  { selections, fetched }: Pick<FetchedReleases, 'selections' | 'fetched'>,
  options: StagingOptions,
): Promise<StagedTrees & FetchWarnings> {
  const staged = new Map<string, StagedBundle>();
  const [mirrorFailures, warnings]: [MirrorFailure[], Problem[]] = [[], []];
  const results = await forEachTaken(host, selections, async (one) => {
    const { bundle, target } = one;
    const release = fetched.get(bundle.name);
    if (release === undefined) throw new WritError('INTERNAL', `nothing of ${bundle.name} was fetched`);
    const treeOptions = createTreeOptions(host, one, options);
    const unpack = async (archive: VerifiedArchive | Promise<VerifiedArchive>) =>
      stageBundle({ ...treeOptions, archive: await archive });
    const fetchNow = (): Promise<VerifiedArchive> =>
      fetchArchive({
        ...createFetchOptions(host, one, { ...options, mirrorFailures }),
        directory: join(options.staging, `fetch-${bundle.name}`),
        onProgress: (doneBytes) => cycleProgress.reportBytes('stage', doneBytes, target.length),
        onResume: cycleProgress.resumes,
      });
    const tree =
      'archive' in release
        ? await unpack(release.archive)
        : await withArchiveFallback(
            { host, target, warnings },
            () => stageWithoutArchive(host, treeOptions, release),
            () => unpack(fetchNow()),
          );
    staged.set(bundle.name, tree);
  });
  return { selections: holdBackSets(results, host.config.together), staged, mirrorFailures, warnings };
}

type StageTreeOptions = ReturnType<typeof createTreeOptions>;

function createTreeOptions(
  { config, durable }: Host,
  { bundle, target }: Taken,
  { staging, mtimeSeconds, signal }: StagingOptions,
) {
  const groupId = bundle.group === undefined ? undefined : resolveGroup(bundle.group);
  return {
    ...{ target, fs: durable, limits: config.limits, mode: bundle.mode, mtimeSeconds, signal },
    directory: join(staging, `tree-${bundle.name}`),
    scratch: join(staging, `kept-${bundle.name}`),
    ...given({ groupId }),
  };
}

function stageWithoutArchive(
  host: Host,
  treeOptions: StageTreeOptions,
  release: Exclude<FetchedRelease, { archive: unknown }>,
): Promise<StagedBundle> {
  if ('delta' in release) {
    const { strategy, delta } = release;
    const copy = { ...strategy.baseCopy, deltas: [...strategy.baseCopy.deltas, delta] };
    return stageDelta({ ...treeOptions, base: strategy.base, delta, copy });
  }
  host.durable.makeDirectory('fetch.directory', treeOptions.scratch, 0o700);
  return rebuildRelease({ ...treeOptions, copy: release.strategy.copy });
}

/** @returns the options that each fetch of a release needs */
function createFetchOptions(
  host: Host,
  { target }: Taken,
  { signal, mirrorFailures }: { readonly signal: AbortSignal; readonly mirrorFailures: MirrorFailure[] },
) {
  const { client, durable, config } = host;
  return {
    ...{ client, target, signal, fs: durable, limits: config.limits, partials: host },
    onMirrorFailed: (failure: MirrorFailure) => void mirrorFailures.push(failure),
  };
}

function makeDirectory(host: Host, staging: string, name: string): string {
  const path = join(staging, name);
  host.durable.makeDirectory('fetch.directory', path, 0o700);
  return path;
}

/** Runs `act` for each taken selection. After an error, the bundle keeps its active release and has the error as its result. */
async function forEachTaken(
  host: Host,
  selections: readonly Selection[],
  act: (one: Taken) => Promise<void>,
): Promise<Selection[]> {
  const results: Selection[] = [];
  for (const selection of selections) {
    results.push(selection.kind === 'keep' ? selection : await keepActiveOnError(host, selection, act));
  }
  return results;
}

async function keepActiveOnError(
  host: Host,
  selection: Taken,
  act: (one: Taken) => Promise<void>,
): Promise<Selection> {
  try {
    await act(selection);
    return selection;
  } catch (error) {
    // A full disk: partial downloads of all releases are removed.
    if (isDiskFull(error)) dropPartials(host);
    return refuse(selection, error);
  }
}
