// The context of every command that judges a candidate, check or canary: the path of the candidate, the view of the policy path
// in the sandbox, and the directory to write in. Shared, so that all steps judge the same candidate.
import * as fs from 'node:fs';
import { basename } from 'node:path';
import type { NamedRelease } from '../../core/release/release.js';
import type { Generation } from '../generations/generations.js';
import { type CandidateSandbox, type HookOptions, sandboxForCandidate } from '../hooks/hook.js';
import type { CandidateView, ViewedTree } from '../hooks/policy-view.js';
import { confineOn } from '../hooks/sandbox.js';
import type { CandidateBundle, CandidateOptions } from '../staging/candidate.js';
import type { StagedBundle } from '../staging/staged-bundle.js';
import type { Host } from '../state/host.js';
import { treeDirectoryName } from '../state/paths.js';

export interface CandidateContext extends Pick<Host, 'durable' | 'clock' | 'log'> {
  /** The candidate generation directory. */
  readonly candidatePath: string;
  /** The active generation directory; absent before the first activation. */
  readonly currentPath?: string | undefined;
  /** Absent: no command is confined. */
  readonly confine?: CandidateSandbox;
  /** An existing private directory in staging. */
  readonly scratchRoot: string;
  readonly signal?: AbortSignal;
}

export interface CheckAllOptions extends CandidateOptions {
  readonly staged: ReadonlyMap<string, StagedBundle>;
  /** The active generation; absent before the first activation. */
  readonly current?: Generation;
  /** Releases that settled on this host before: a change check accepts them. Absent: none. */
  readonly settled?: readonly NamedRelease[];
  /** Number of candidates built before in this attempt. Each has a directory of its own. */
  readonly built?: number;
}

/**
 * Collects what a check or canary command of this candidate needs. Creates no directory and runs no command.
 * @param candidatePath the generation directory of the candidate, as it is on the host
 * @param bundles all bundles of the candidate, also the unchanged ones: the sandbox shows their trees
 * @returns the context. `confine` is always set; its view names staged trees as the swap will. `currentPath` is undefined before
 *   the first activation; `scratchRoot` is `options.staging`
 * @throws Error of the file system (ENOENT, EACCES), which is no WritError, if a tree does not exist
 */
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

/** @returns the policy path as commands in the sandbox see it: staged trees have the names that they get in the swap */
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
 * Creates the options of a command that judges the candidate.
 * @param bundle the value of `{bundle}`; without a name if the command is about several bundles
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
    confine: confine && sandboxForCandidate(confine, bundle.name),
    ...{ scratchRoot, durable, signal },
  };
}

/** Limit in characters for the output of a command in an error; the report has more. */
export const maxTextInError = 2000;
