// The steps fetch, stage, verify and check: from selections to a candidate generation that every check accepts.
// Everything happens in the cycle's staging directory; the active policy is not touched. A bundle that fails
// drops out with its set, and what is left is checked again as a whole.
import { join } from 'node:path';
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { WritError } from '../../core/errors.js';
import type { Manifest } from '../../core/release/manifest.js';
import { lookUpGroup } from '../../platform/users/group-id.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import { candidateGround } from '../checks/candidate-context.js';
import { type CheckReport, runChecks } from '../checks/run-checks.js';
import type { ActiveBundle } from '../generations/generation-contents.js';
import type { Generation } from '../generations/generations.js';
import { type CycleStory, outcomeOf, problemOf } from '../job/progress.js';
import { holdBackSets, type Selection } from '../select/select-releases.js';
import type { Host } from '../state/host.js';
import { fetchArchive, type VerifiedArchive } from './fetch-archive.js';
import { type StagedBundle, stageBundle } from './stage-bundle.js';

/** One bundle of the candidate generation: staged now, or active already. */
export interface CandidateBundle {
  readonly selection: Selection;
  readonly treePath: string;
  readonly manifest: Manifest;
  readonly staged?: StagedBundle;
}

export interface StagingOptions {
  readonly staging: string;
  readonly active: ReadonlyMap<string, ActiveBundle>;
  readonly mtimeSeconds: number;
  readonly signal: AbortSignal;
}

export interface CandidateOptions extends StagingOptions {
  /** The number that the candidate will have. */
  readonly generation: number;
}

type Taken = Extract<Selection, { kind: 'take' }>;

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

/** The `stage` step: unpacks and verifies each archive into a tree of its own. */
export async function stageAll(
  host: Host,
  selections: readonly Selection[],
  archives: ReadonlyMap<string, VerifiedArchive>,
  options: StagingOptions,
): Promise<{ selections: Selection[]; staged: ReadonlyMap<string, StagedBundle> }> {
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

function makeDirectory(host: Host, staging: string, name: string): string {
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

/** @returns the selection as one that keeps the active release, because of this error */
function refuse(selection: Selection, error: unknown): Selection {
  const result: BundleResult = { ...selection.result, outcome: outcomeOf(error), problem: problemOf(error) };
  const offered = selection.kind === 'take' ? { offered: selection.target.release } : {};
  return { kind: 'keep', bundle: selection.bundle, result, ...offered };
}

/** @returns the selections that bring a new release */
export function taken(selections: readonly Selection[]): Taken[] {
  return selections.filter((one): one is Taken => one.kind === 'take');
}

/** @returns the bundles of a candidate generation: what is staged, and what is active already */
export function assembleCandidate(
  selections: readonly Selection[],
  staged: ReadonlyMap<string, StagedBundle>,
  active: ReadonlyMap<string, ActiveBundle>,
): CandidateBundle[] {
  return selections.flatMap((selection): CandidateBundle[] => {
    const tree = selection.kind === 'take' ? staged.get(selection.bundle.name) : undefined;
    if (tree !== undefined)
      return [{ selection, treePath: tree.treePath, manifest: tree.manifest, staged: tree }];
    const old = active.get(selection.bundle.name);
    return old === undefined ? [] : [{ selection, treePath: old.entry.treePath, manifest: old.manifest }];
  });
}

export interface CheckAllOptions extends CandidateOptions {
  readonly staged: ReadonlyMap<string, StagedBundle>;
  /** The active generation; left out before the first activation. */
  readonly current?: Generation;
  /** How many candidates were built before in this attempt: each has a directory of its own. */
  readonly built?: number;
}

export interface CheckedCandidate {
  /** The refused ones are held back. */
  readonly selections: Selection[];
  readonly checks: readonly CheckReport[];
  /** The generation directory that every check has accepted; absent when nothing new is left. */
  readonly candidatePath?: string;
  readonly built: number;
}

/**
 * The `check` step. A refused bundle drops out with its set; the rest is built again and checked again as a
 * whole, as it will be active, until nobody refuses or nothing new is left.
 * @returns the selections with the refused ones held back, and the report of each check
 */
export async function checkAll(
  host: Host,
  selections: readonly Selection[],
  options: CheckAllOptions,
): Promise<CheckedCandidate> {
  let left = [...selections];
  const checks: CheckReport[] = [];
  let built = options.built ?? 0;
  while (taken(left).length > 0) {
    const candidatePath = join(options.staging, `candidate-${built}`);
    built += 1;
    const refusals = await checkOnce(host, left, options, { candidatePath, checks });
    if (refusals.size === 0) return { selections: left, checks, candidatePath, built };
    left = holdBack(host, left, refusals);
  }
  return { selections: left, checks, built };
}

/** @returns the selections in which these bundles, with their sets, keep their active release */
export function holdBack(
  host: Host,
  selections: readonly Selection[],
  refusals: ReadonlyMap<string, WritError>,
): Selection[] {
  return holdBackSets(
    selections.map((one) =>
      refusals.has(one.bundle.name) ? refuse(one, refusals.get(one.bundle.name)) : one,
    ),
    host.config.together,
  );
}

async function checkOnce(
  host: Host,
  selections: readonly Selection[],
  options: CheckAllOptions,
  { candidatePath, checks }: { readonly candidatePath: string; readonly checks: CheckReport[] },
): Promise<ReadonlyMap<string, WritError>> {
  const bundles = assembleCandidate(selections, options.staged, options.active);
  host.durable.makeDirectory('check.candidate', candidatePath, 0o755);
  for (const { selection, treePath } of bundles) {
    host.durable.createLink('check.candidate-link', join(candidatePath, selection.bundle.name), treePath);
  }
  const { problems } = await runChecks({
    ...candidateGround(host, candidatePath, bundles, options),
    bundles: bundles.map(({ selection, treePath, manifest, staged }) => ({
      config: selection.bundle,
      treePath,
      manifest,
      changed: staged !== undefined,
    })),
    onReport: (report) => void checks.push(report),
  });
  return blameNewBundles(problems, bundles);
}

/**
 * A check of an unchanged bundle can only have failed because of what is new beside it: then every new bundle is
 * refused, for nobody knows which it was, and the active one stays as it is.
 */
function blameNewBundles(
  problems: ReadonlyMap<string, WritError>,
  bundles: readonly CandidateBundle[],
): ReadonlyMap<string, WritError> {
  const fresh = bundles.filter((one) => one.staged !== undefined).map((one) => one.selection.bundle.name);
  const direct = new Map([...problems].filter(([bundle]) => fresh.includes(bundle)));
  const first = [...problems.values()][0];
  if (direct.size > 0 || first === undefined) return direct;
  return new Map(fresh.map((bundle) => [bundle, first]));
}
