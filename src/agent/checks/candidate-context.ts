// What every command that judges a candidate stands on, check and canary alike: where the candidate lies, what it sees
// of policy before any of it is placed there, and where it may write. Made in one way, so that no step judges another
// candidate than the one before.
import * as fs from 'node:fs';
import { basename } from 'node:path';
import type { NamedRelease } from '../../core/release/release.js';
import type { Generation } from '../generations/generations.js';
import { type CandidateSandbox, confinedTo, type HookOptions } from '../hooks/hook.js';
import type { CandidateView, ViewedTree } from '../hooks/policy-view.js';
import { confineOn } from '../hooks/sandbox.js';
import type { CandidateBundle, CandidateOptions } from '../staging/candidate.js';
import type { StagedBundle } from '../staging/staged-bundle.js';
import type { Host } from '../state/host.js';
import { treeDirectoryName } from '../state/paths.js';

export interface CandidateContext extends Pick<Host, 'durable' | 'clock' | 'log'> {
  /** The candidate generation directory. */
  readonly candidatePath: string;
  /** The active generation directory; left out before the first activation. */
  readonly currentPath?: string | undefined;
  /** Left out: no command is confined. */
  readonly confine?: CandidateSandbox;
  /** An existing private directory in staging. */
  readonly scratchRoot: string;
  readonly signal?: AbortSignal;
}

export interface CheckAllOptions extends CandidateOptions {
  readonly staged: ReadonlyMap<string, StagedBundle>;
  /** The active generation; left out before the first activation. */
  readonly current?: Generation;
  /** Releases that settled on this host before: a check of the change lets them pass. Left out: none. */
  readonly settled?: readonly NamedRelease[];
  /** How many candidates were built before in this attempt: each has a directory of its own. */
  readonly built?: number;
}

/** @param bundles all of the candidate, also those that are active already */
export function candidateContext(
  host: Pick<Host, 'config' | 'paths' | 'durable' | 'clock' | 'log' | 'sandbox'>,
  candidatePath: string,
  bundles: readonly CandidateBundle[],
  options: CheckAllOptions,
): CandidateContext {
  const { durable, clock, log } = host;
  return {
    ...{ candidatePath, durable, clock, log },
    currentPath: options.current?.path,
    confine: { ...confineOn(host), view: candidateView(bundles, options) },
    scratchRoot: options.staging,
    signal: options.signal,
  };
}

/** As commands in the sandbox find it at the live policy path: staged trees under the names that they will get. */
function candidateView(
  bundles: readonly CandidateBundle[],
  { generation, current }: CheckAllOptions,
): CandidateView {
  const trees = bundles.map(({ selection, treePath, staged }): ViewedTree => {
    const directory =
      staged === undefined
        ? basename(treePath)
        : treeDirectoryName(staged.release.serial, staged.release.manifest.digest, generation);
    return { bundle: selection.bundle.name, directory, source: fs.realpathSync(treePath) };
  });
  const active = current && {
    generation: current.number,
    trees: current.entries.map(({ bundle, treeDirectory: directory, treePath }): ViewedTree => {
      return { bundle, directory, source: fs.realpathSync(treePath) };
    }),
  };
  return { kind: 'candidate', candidate: { generation, trees }, active };
}

/**
 * What a command is given that judges the candidate.
 * @param bundle its `{bundle}`; without a name where it is about more than one
 */
export function candidateHook(
  context: CandidateContext,
  bundle: { readonly name?: string | undefined; readonly treePath?: string | undefined },
): Omit<HookOptions, 'hook'> {
  const { candidatePath, currentPath, confine, scratchRoot, durable, signal } = context;
  return {
    places: {
      generation: candidatePath,
      candidate: candidatePath,
      current: currentPath,
      bundle: bundle.treePath,
    },
    confine: confine && confinedTo(confine, bundle.name),
    ...{ scratchRoot, durable, signal },
  };
}

/** Of a command's output, in an error; the report has more. */
export const maxTextInError = 2000;
