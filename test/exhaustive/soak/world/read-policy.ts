// Reads a policy as a worker does: resolves `current` once, then reads every file of that generation, and checks that each
// bundle is exactly one published release. Owns the check; callers choose when to read.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describeTree, digestTree, type KnownReleases } from './known-releases.js';

export interface SeenBundle {
  readonly bundle: string;
  readonly serial: number;
  /** Real path. */
  readonly tree: string;
  /** True while the driver's damage to the tree is not repaired. */
  readonly tainted: boolean;
}

export interface PolicyRead {
  /** Real path; omitted when `current` does not exist. */
  readonly generation?: string;
  readonly bundles: readonly SeenBundle[];
  readonly files: number;
  /** Violations of rules that hold at any moment. */
  readonly violations: readonly string[];
  /** The reading took longer than a replaced generation stays on disk. */
  readonly late: boolean;
}

export interface ReadOptions {
  readonly known: KnownReleases;
  /** How long a replaced generation stays readable, in milliseconds. */
  readonly graceMs: number;
}

const nothing: PolicyRead = { bundles: [], files: 0, violations: [], late: false };

/** @param policy the public directory of a host */
export function readPolicy(policy: string, options: ReadOptions): PolicyRead {
  const startedMs = performance.now();
  const late = (): boolean => performance.now() - startedMs > options.graceMs * 0.8;
  let generation: string;
  try {
    generation = fs.realpathSync(join(policy, 'current'));
  } catch (error) {
    options.known.refresh();
    if (options.known.isLinkDamaged(policy)) return nothing;
    return { ...nothing, violations: [`current cannot be resolved: ${String(error)}`] };
  }
  return readGeneration(generation, options, late);
}

/** @param generation real path of a generation directory */
export function readGeneration(
  generation: string,
  options: ReadOptions,
  late = (): boolean => false,
): PolicyRead {
  const bundles: SeenBundle[] = [];
  const violations: string[] = [];
  let files = 0;
  try {
    for (const bundle of fs.readdirSync(generation)) {
      const seen = readBundle(generation, bundle, options.known);
      files += seen.files;
      bundles.push(seen);
      if (seen.violation !== undefined) violations.push(seen.violation);
    }
    if (bundles.length === 0) violations.push(`${generation} is empty`);
  } catch (error) {
    options.known.refresh();
    if (!options.known.isTainted(generation)) violations.push(`${generation}: ${String(error)}`);
  }
  const held = late();
  return { generation, bundles, files, violations: held ? [] : violations, late: held };
}

function readBundle(
  generation: string,
  bundle: string,
  known: KnownReleases,
): SeenBundle & { readonly files: number; readonly violation?: string } {
  let tree = join(generation, bundle);
  let found = { digest: 'unreadable', files: 0 };
  let trouble = '';
  try {
    tree = fs.realpathSync(tree);
    found = digestTree(tree);
  } catch (error) {
    trouble = String(error);
  }
  const serial = Number(/\/([0-9]+)-[0-9a-f]{12}\.[0-9]+$/.exec(tree)?.[1] ?? 0);
  if (known.kindOf(bundle, found.digest) === undefined) known.refresh();
  const kind = known.kindOf(bundle, found.digest);
  const tainted = known.isTainted(tree) || known.isTainted(generation);
  const seen = { bundle, serial, tree, tainted, files: found.files };
  if (tainted || kind === 'good' || kind === 'nacked') return seen;
  const what =
    kind === 'refused' ? 'was refused by its check' : `is no published release: ${describeTree(tree)}`;
  return { ...seen, violation: `${tree} ${what} ${trouble}` };
}
