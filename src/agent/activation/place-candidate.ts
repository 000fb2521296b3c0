// The `flush` step and the plan of the move that follows: staged trees get their final names, durably, and the
// groups that the difference concerns are found. Nothing that workers can see points at them yet.
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isWritError } from '../../core/errors.js';
import { changedPaths, concernsGroup, type PolicyFiles } from '../../core/release/affected-groups.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import { placeGeneration } from '../generations/generations.js';
import { keepRelease } from '../generations/release-records.js';
import type { TellTarget } from '../notify/notify-context.js';
import { dueGroups } from '../notify/worker-ledger.js';
import type { CandidateBundle } from '../staging/candidate.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { channelKey, type Ledger, withAccepted } from '../state/ledger.js';
import { treeName } from '../state/paths.js';
import { rememberBlamed } from '../state/refusals.js';
import type { Move } from './move.js';

export interface PlaceOptions {
  /** The attempt's directory in staging. */
  readonly staging: string;
  readonly generation: number;
}

/** Flushes everything staged by one `sync -f`, then renames it into place, the generation last. */
export async function placeCandidate(
  host: Host,
  candidate: readonly CandidateBundle[],
  options: PlaceOptions,
): Promise<TellTarget> {
  const { paths, durable } = host;
  const { staging, generation } = options;
  // Never a second time: a flush that failed may succeed when it is repeated, without the data.
  await durable.flushTree('flush.tree', staging);
  const placed: string[] = [];
  try {
    const trees = placeTrees(host, candidate, { ...options, onPlaced: (path) => placed.push(path) });
    durable.flushDirectory('flush.bundles', paths.bundles);
    durable.flushDirectory('flush.archives', paths.archives);
    placeGeneration(paths, durable, { number: generation, staging, trees });
  } catch (error) {
    takeBack(host, placed, staging);
    throw error;
  }
  return { generation, path: join(paths.generations, String(generation)) };
}

/** @returns the directory of each bundle's tree in the new generation */
function placeTrees(
  { paths, durable, clock }: Host,
  candidate: readonly CandidateBundle[],
  options: PlaceOptions & { readonly onPlaced: (path: string) => void },
): ReadonlyMap<string, string> {
  const { staging, generation } = options;
  const trees = new Map<string, string>();
  for (const { selection, treePath, staged } of candidate) {
    const { name } = selection.bundle;
    trees.set(name, basename(treePath));
    if (staged === undefined) continue;
    const { serial, manifest } = staged.release;
    const place = join(paths.bundles, name, treeName(serial, manifest.digest, generation));
    durable.ensureDirectory('flush.bundle', dirname(place), 0o755);
    options.onPlaced(place);
    durable.rename('flush.place', staged.treePath, place);
    trees.set(name, basename(place));
    keepRelease(paths, durable, {
      target: staged.target,
      archivePath: staged.archivePath,
      manifestBytes: staged.manifestBytes,
      staging,
      stagedAtMs: clock.nowMs(),
    });
  }
  return trees;
}

/** Into staging, which goes when the cycle ends; no generation has named them. What stays is swept at the next start. */
function takeBack({ durable, paths, log }: Host, placed: readonly string[], staging: string): void {
  for (const path of placed.filter((one) => fs.existsSync(one))) {
    try {
      const bundle = basename(dirname(path));
      durable.rename('flush.take-back', path, join(staging, `unused-${bundle}-${basename(path)}`));
    } catch (error) {
      if (!isWritError(error)) throw error;
      log.warn({ err: error, path, policy: paths.policy }, 'a tree that nothing names stays');
    }
  }
}

export interface MovePlanOptions {
  readonly active: ActivePolicy | undefined;
  readonly candidate: readonly CandidateBundle[];
  /** Bundles whose active tree is damaged: whoever uses them may have read that. */
  readonly damaged: readonly string[];
  readonly placed: TellTarget;
  readonly staging: string;
  readonly signal: AbortSignal;
  /** Told which bundles a worker's refusal falls on. */
  readonly onBlamed: (bundles: readonly string[]) => void;
}

/** The move to a candidate that lies in its place. */
export function planMove(host: Host, options: MovePlanOptions): Move {
  const { active, candidate, placed } = options;
  const from = active && { generation: active.generation.number, path: active.generation.path };
  const releases = candidate.flatMap(({ staged }) => (staged ? [staged.release] : []));
  return {
    kind: 'update',
    ...(from ? { from } : {}),
    to: placed,
    groups: concernedGroups(host, options),
    releases,
    staging: options.staging,
    signal: options.signal,
    ledger: (ledger) => acceptAll(ledger, candidate),
    onRefused: (error, groups) => options.onBlamed(rememberBlamed(host, releases, error, groups)),
  };
}

/** Paths that the candidate changes, as `bundle:path`. */
export function changedBy(active: PolicyFiles, candidate: readonly CandidateBundle[]): string[] {
  return changedPaths(active, new Map(candidate.map((one) => [one.selection.bundle.name, one])));
}

/** Groups that use what changed, and groups with a worker that is due: it may hold an older generation still. */
function concernedGroups(
  host: Host,
  { active, candidate, damaged }: Pick<MovePlanOptions, 'active' | 'candidate' | 'damaged'>,
): WorkerGroup[] {
  const changed = changedBy(active?.bundles ?? new Map(), candidate);
  const due = dueGroups(host.ledger.read());
  return host.groups.filter(
    ({ config }) =>
      concernsGroup(config, changed) ||
      config.uses.some((name) => damaged.includes(name)) ||
      due.has(config.name),
  );
}

function acceptAll(ledger: Ledger, candidate: readonly CandidateBundle[]): Ledger {
  return candidate.reduce((all, { staged, selection }) => {
    if (staged === undefined) return all;
    const { bundle, channel, serial, manifest } = staged.release;
    const accepted = withAccepted(all, channelKey(bundle, channel), {
      serial,
      manifestDigest: manifest.digest,
    });
    const holds = accepted.holds.filter((one) => one.bundle !== bundle || one.serial > serial);
    return { ...accepted, holds, channels: { ...accepted.channels, [selection.bundle.name]: channel } };
  }, ledger);
}
