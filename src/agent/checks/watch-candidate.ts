// Detects whether a command that judges a candidate changed it, by a comparison of file metadata before and after. Skipped in the
// sandbox, which mounts the candidate read-only. Reads only.
import * as fs from 'node:fs';
import { isWritError, WritError } from '../../core/errors.js';
import { walkTree } from '../generations/walk-tree.js';
import type { HookSandbox } from '../hooks/hook.js';

export interface WatchOptions {
  /** The candidate generation directory. */
  readonly candidatePath: string;
  readonly bundles: readonly { readonly config: { readonly name: string }; readonly treePath: string }[];
  readonly confine?: Pick<HookSandbox, 'sandbox'>;
}

/** @returns a function that gives, by bundle, CANDIDATE_CHANGED: the checks judged bytes that are no longer the signed ones */
export async function watchCandidate(
  options: WatchOptions,
): Promise<() => Promise<ReadonlyMap<string, WritError>>> {
  if (!(await canBeChanged(options))) return async () => new Map();
  const before = await fingerprints(options);
  return async () => findChanges(before, await fingerprints(options), options);
}

/** @returns false in the sandbox, which mounts trees read-only, and if the required sandbox is missing: then no command runs */
async function canBeChanged({ confine }: WatchOptions): Promise<boolean> {
  if (confine === undefined) return true;
  try {
    return (await confine.sandbox.open()) === undefined;
  } catch (error) {
    if (isWritError(error)) return false;
    throw error;
  }
}

type Fingerprint = ReadonlyMap<string, string>;

/** @returns fingerprints by root: the candidate directory and every tree */
async function fingerprints({
  bundles,
  candidatePath,
}: WatchOptions): Promise<ReadonlyMap<string, Fingerprint>> {
  const all = new Map<string, Fingerprint>();
  for (const root of [candidatePath, ...bundles.map(({ treePath }) => treePath)]) {
    all.set(root, await fingerprint(root));
  }
  return all;
}

async function fingerprint(root: string): Promise<Fingerprint> {
  const own = fs.lstatSync(root, { bigint: true, throwIfNoEntry: false });
  if (own === undefined) return new Map();
  const nodes = new Map([['.', identityOf(own)]]);
  // The root is no directory any more. The scrub reports that; nothing below it belongs to the candidate.
  if (!own.isDirectory()) return nodes;
  for await (const { path, stats } of walkTree(root)) nodes.set(path, identityOf(stats));
  return nodes;
}

// Includes the ctime, because a process can restore the size and mtime, but not the ctime.
function identityOf({ size, mtimeNs, ctimeNs, mode, ino }: fs.BigIntStats): string {
  return `${size} ${mtimeNs} ${ctimeNs} ${mode} ${ino}`;
}

function findChanges(
  before: ReadonlyMap<string, Fingerprint>,
  after: ReadonlyMap<string, Fingerprint>,
  { bundles, candidatePath }: WatchOptions,
): ReadonlyMap<string, WritError> {
  const inGeneration = firstChange(before.get(candidatePath), after.get(candidatePath));
  const changed = new Map<string, WritError>();
  for (const { config, treePath } of bundles) {
    const path = inGeneration ?? firstChange(before.get(treePath), after.get(treePath));
    if (path === undefined) continue;
    // Outweighs any verdict, because the checks judged bytes that are no longer the signed ones.
    changed.set(config.name, changeError(config.name, path, fs.existsSync(treePath)));
  }
  return changed;
}

/** A removed candidate has a hint of its own, because any process that can write there may have removed it. */
function changeError(bundle: string, path: string, exists: boolean): WritError {
  const facts = { bundle, path };
  if (exists) {
    const message = `${bundle}: a check or a canary changed ${path} in the candidate`;
    return new WritError('CANDIDATE_CHANGED', message, { facts });
  }
  const hint =
    'Find what removes files of the state directory: a check, a restored backup, or a Writ process beside this one.';
  return new WritError('CANDIDATE_CHANGED', `${bundle}: the candidate was removed while it was judged`, {
    facts,
    hint,
  });
}

function firstChange(before: Fingerprint = new Map(), after: Fingerprint = new Map()): string | undefined {
  for (const [path, identity] of before) if (after.get(path) !== identity) return path;
  for (const path of after.keys()) if (!before.has(path)) return path;
  return undefined;
}
