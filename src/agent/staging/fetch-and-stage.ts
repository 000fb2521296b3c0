// The steps fetch and stage: from selections to verified trees. Everything happens in the cycle's staging directory; the active
// policy is not touched. A bundle that fails drops out with its set. Where another way than the archive's leads nowhere, the
// archive is taken in the same cycle.
import { join } from 'node:path';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { lookUpGroup } from '../../platform/users/group-id.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import type { KeptFile } from '../generations/kept-copies.js';
import type { CycleStory } from '../job/progress.js';
import { dropPartials } from '../partials/partials.js';
import { holdBackSets, refuse, type Selection, type Taken, taken } from '../select/selection.js';
import type { Host } from '../state/host.js';
import { isDiskFull } from '../state/state-file.js';
import type { StagingOptions } from './candidate.js';
import { elseArchive } from './else-archive.js';
import { type FetchOptions, fetchArchive, fetchDelta, type VerifiedArchive } from './fetch-archive.js';
import { rebuildKept } from './rebuild-kept.js';
import { stageBundle } from './stage-bundle.js';
import { stageByDifference } from './stage-by-difference.js';
import type { StagedBundle } from './staged-bundle.js';
import { bytesOfWay, type Way, wayTo } from './ways.js';

type WayOf<Kind extends Way['kind']> = Extract<Way, { kind: Kind }>;

/** One release, as far as it was fetched. */
export type Fetched =
  | { readonly way: WayOf<'archive'>; readonly archive: VerifiedArchive }
  | { readonly way: WayOf<'difference'>; readonly delta: KeptFile }
  | { readonly way: WayOf<'kept'> };

/** What a step found beside its result. */
export interface Beside {
  /** Mirrors that failed, where another one had what was wanted. */
  readonly mirrorFailures: readonly MirrorFailure[];
  /** Ways that led nowhere. */
  readonly warnings: readonly Problem[];
}

export interface FetchedReleases extends Beside {
  /** Those that failed are held back. */
  readonly selections: Selection[];
  /** By bundle: from which byte on it came, where a transfer was cut before. */
  readonly resumedFrom: ReadonlyMap<string, number>;
  /** By bundle. */
  readonly fetched: ReadonlyMap<string, Fetched>;
}

const byArchive: WayOf<'archive'> = { kind: 'archive' };

/** The `fetch` step. */
export async function fetchAll(
  host: Host,
  story: CycleStory,
  selections: readonly Selection[],
  options: StagingOptions,
): Promise<FetchedReleases> {
  const fetched = new Map<string, Fetched>();
  const resumedFrom = new Map<string, number>();
  const [mirrorFailures, warnings]: [MirrorFailure[], Problem[]] = [[], []];
  const ways = new Map(taken(selections).map((one) => [one.target, wayTo(host, one, options)]));
  const totalBytes = [...ways].reduce((sum, [target, way]) => sum + bytesOfWay(way, target), 0);
  let doneBefore = 0;
  let claimedBytes = 0;
  const tried = await tryEach(host, selections, async (one) => {
    const { bundle, target } = one;
    const from: FetchOptions = {
      ...fetching(host, one, { ...options, mirrorFailures }),
      directory: makeDirectory(host, options.staging, `fetch-${bundle.name}`),
      claimedBytes,
      onProgress: (doneBytes) => story.progress('fetch', doneBefore + doneBytes, totalBytes),
      onResume: (fromByte) => {
        story.resumes(fromByte);
        resumedFrom.set(bundle.name, fromByte);
      },
    };
    const archive = async () => {
      resumedFrom.delete(bundle.name);
      return { way: byArchive, archive: await fetchArchive(from) };
    };
    const way = ways.get(target) ?? byArchive;
    const delta = async (by: WayOf<'difference'>): Promise<Fetched> => {
      return { way: by, delta: await fetchDelta({ ...from, delta: by.delta }) };
    };
    const got =
      way.kind === 'difference'
        ? await elseArchive<Fetched>({ host, target, warnings }, () => delta(way), archive)
        : way.kind === 'kept'
          ? { way }
          : await archive();
    fetched.set(bundle.name, got);
    doneBefore += bytesOfWay(way, target);
    // Its tree is at least as large.
    claimedBytes += target.length;
  });
  const kept = holdBackSets(tried, host.config.together);
  return { selections: kept, fetched, resumedFrom, mirrorFailures, warnings };
}

export interface StagedTrees {
  /** Those that failed are held back. */
  readonly selections: Selection[];
  /** By bundle. */
  readonly staged: ReadonlyMap<string, StagedBundle>;
}

/** The `stage` step: makes and verifies the tree of each release. */
export async function stageAll(
  host: Host,
  story: CycleStory,
  { selections, fetched }: Pick<FetchedReleases, 'selections' | 'fetched'>,
  options: StagingOptions,
): Promise<StagedTrees & Beside> {
  const staged = new Map<string, StagedBundle>();
  const [mirrorFailures, warnings]: [MirrorFailure[], Problem[]] = [[], []];
  const tried = await tryEach(host, selections, async (one) => {
    const { bundle, target } = one;
    const got = fetched.get(bundle.name);
    if (got === undefined) throw new WritError('INTERNAL', `nothing of ${bundle.name} was fetched`);
    const place = placeOf(host, one, options);
    const unpack = async (archive: VerifiedArchive | Promise<VerifiedArchive>) =>
      stageBundle({ ...place, archive: await archive });
    const fetchNow = (): Promise<VerifiedArchive> =>
      fetchArchive({
        ...fetching(host, one, { ...options, mirrorFailures }),
        directory: join(options.staging, `fetch-${bundle.name}`),
        onProgress: (doneBytes) => story.progress('stage', doneBytes, target.length),
        onResume: story.resumes,
      });
    const tree =
      'archive' in got
        ? await unpack(got.archive)
        : await elseArchive(
            { host, target, warnings },
            () => stageBy(host, place, got),
            () => unpack(fetchNow()),
          );
    staged.set(bundle.name, tree);
  });
  return { selections: holdBackSets(tried, host.config.together), staged, mirrorFailures, warnings };
}

type Place = ReturnType<typeof placeOf>;

function placeOf(
  { config, durable }: Host,
  { bundle, target }: Taken,
  { staging, mtimeSeconds, signal }: StagingOptions,
) {
  const groupId = bundle.group === undefined ? undefined : lookUpGroup(bundle.group);
  return {
    ...{ target, fs: durable, limits: config.limits, mode: bundle.mode, mtimeSeconds, signal },
    directory: join(staging, `tree-${bundle.name}`),
    scratch: join(staging, `kept-${bundle.name}`),
    ...given({ groupId }),
  };
}

function stageBy(
  host: Host,
  place: Place,
  got: Exclude<Fetched, { archive: unknown }>,
): Promise<StagedBundle> {
  if ('delta' in got) {
    const { way, delta } = got;
    const copy = { ...way.kept, deltas: [...way.kept.deltas, delta] };
    return stageByDifference({ ...place, base: way.base, delta, copy });
  }
  host.durable.makeDirectory('fetch.directory', place.scratch, 0o700);
  return rebuildKept({ ...place, copy: got.way.copy });
}

/** What fetching a release needs wherever it is done. */
function fetching(
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

/** Runs `act` for each taken selection; what throws keeps its active release, with the error as its result. */
async function tryEach(
  host: Host,
  selections: readonly Selection[],
  act: (one: Taken) => Promise<void>,
): Promise<Selection[]> {
  const results: Selection[] = [];
  for (const selection of selections) {
    results.push(selection.kind === 'keep' ? selection : await tryOne(host, selection, act));
  }
  return results;
}

async function tryOne(host: Host, selection: Taken, act: (one: Taken) => Promise<void>): Promise<Selection> {
  try {
    await act(selection);
    return selection;
  } catch (error) {
    // What was begun elsewhere is the first to give way.
    if (isDiskFull(error)) dropPartials(host);
    return refuse(selection, error);
  }
}
