// Generations on disk: which one is active, what it holds, the number of the next, and building it. Never writes into a
// tree or a generation that exists; what `current` names is never renamed or removed.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import type { DurableFs, LinkOptions } from '../../platform/disk/durable-fs.js';
import { listEntries } from '../../platform/read-file.js';
import type { Host } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';
import {
  bundleLink,
  generationLink,
  type HostPaths,
  parseBundleLink,
  parseGenerationLink,
  parseTreeName,
  type TreeName,
} from '../state/paths.js';

const changeNumbers = ledgerSection('nextGeneration', 'lastMtimeSeconds');

/** One bundle in a generation, as its link names it. */
export interface GenerationEntry {
  readonly bundle: string;
  readonly tree: TreeName;
  /** Name of the tree's directory below `bundles/<bundle>/`. */
  readonly treeDirectory: string;
  /** Real path of the tree. */
  readonly treePath: string;
}

export interface Generation {
  readonly number: number;
  /** Real path of the generation directory. */
  readonly path: string;
  readonly entries: readonly GenerationEntry[];
}

/** @returns the number that `current` names, or undefined when there is no active generation. */
export function activeGenerationNumber(paths: HostPaths): number | undefined {
  let text: string;
  try {
    text = fs.readlinkSync(paths.current);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw foreignLink(paths.current, error);
  }
  const generation = parseGenerationLink(text);
  if (generation === undefined) throw foreignLink(paths.current, undefined);
  return generation;
}

function foreignLink(path: string, cause: unknown): WritError {
  return new WritError('STATE_DAMAGED', `${path} is not a link that Writ made`, {
    facts: { path },
    hint: 'Move it away: Writ never replaces a file that it did not create.',
    cause,
  });
}

/** @returns the active generation, or undefined when there is none. */
export function readActive(paths: HostPaths): Generation | undefined {
  const number = activeGenerationNumber(paths);
  return number === undefined ? undefined : readGeneration(paths, number);
}

/**
 * Reads a generation's links.
 * @throws WritError STATE_DAMAGED when the directory or a tree is missing, or holds what Writ did not make
 */
export function readGeneration(paths: HostPaths, number: number): Generation {
  const path = join(paths.generations, String(number));
  return { number, path, entries: readDirectory(path).map((bundle) => readEntry(paths, number, bundle)) };
}

/** @throws WritError STATE_DAMAGED when the tree is missing, or the link is not one that Writ made */
export function readEntry(paths: HostPaths, number: number, bundle: string): GenerationEntry {
  const text = readBundleLink(join(paths.generations, String(number), bundle));
  const tree = parseBundleLink(bundle, text);
  const treeDirectory = text.slice(text.lastIndexOf('/') + 1);
  const treePath = join(paths.bundles, bundle, treeDirectory);
  if (tree === undefined || !fs.existsSync(treePath)) {
    throw new WritError('STATE_DAMAGED', `generation ${number}: the tree of ${bundle} is missing`, {
      facts: { path: treePath },
    });
  }
  return { bundle, tree, treeDirectory, treePath };
}

/** @returns the link's text; empty, which no link of ours is, for what is no link */
function readBundleLink(path: string): string {
  try {
    return fs.readlinkSync(path);
  } catch (error) {
    if (isSystemError(error, 'EINVAL')) return '';
    throw new WritError('STATE_DAMAGED', `${path} cannot be read`, { facts: { path }, cause: error });
  }
}

/** @returns the names in the directory of a generation, sorted. @throws WritError STATE_DAMAGED */
export function readDirectory(path: string): string[] {
  try {
    return fs.readdirSync(path).sort();
  } catch (error) {
    throw new WritError('STATE_DAMAGED', `${path} cannot be read`, { facts: { path }, cause: error });
  }
}

/** Where releases are kept. Also behind a start: somebody may have removed one from under a running agent. @throws WritError DISK_* */
export function makePlaces({ policy, generations, bundles, archives }: HostPaths, durable: DurableFs): void {
  for (const path of [policy, generations, bundles]) durable.ensureDirectory('prepare.public', path, 0o755);
  durable.ensureDirectory('prepare.private', archives, 0o700);
}

/** @returns the numbers of all generations on disk, ascending. */
export function listGenerations(paths: HostPaths): number[] {
  return listEntries(paths.generations)
    .map(({ name }) => name)
    .filter((name) => /^[1-9][0-9]{0,15}$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Builds the directory of a new generation in staging and renames it into place; its trees are there already.
 * @param trees tree directory by bundle
 */
export function placeGeneration(
  paths: HostPaths,
  durable: DurableFs,
  options: { readonly number: number; readonly staging: string; readonly trees: ReadonlyMap<string, string> },
): void {
  const built = join(options.staging, 'generation');
  durable.makeDirectory('flush.generation', built, 0o755);
  for (const [bundle, tree] of options.trees) {
    durable.createLink('flush.generation-link', join(built, bundle), bundleLink(bundle, tree));
  }
  durable.flushDirectory('flush.generation-directory', built);
  durable.rename('flush.generation-place', built, join(paths.generations, String(options.number)));
}

export interface LinkMove extends Pick<LinkOptions, 'beforeRename'> {
  readonly generation: number;
  readonly cycle: string;
}

/** The commit point: one create and one rename in `policy/`, durable when it returns. */
export function pointCurrentAt(
  paths: HostPaths,
  durable: DurableFs,
  { generation, cycle, beforeRename }: LinkMove,
): void {
  const options = { temporaryName: `.current-${cycle}`, beforeRename };
  durable.replaceLink('swap.link', paths.current, generationLink(generation), options);
}

/** After a first activation that failed: there was no policy before, so there is none now. */
export function removeCurrent(paths: HostPaths, durable: DurableFs): void {
  durable.removeFile('swap.unlink', paths.current);
}

/** @returns as `bundle/directory`, what the links of a generation name; whether it is there is not asked */
export function linkedTrees(paths: HostPaths, number: number): string[] {
  const path = join(paths.generations, String(number));
  return readDirectory(path).flatMap((bundle) => {
    const text = readBundleLink(join(path, bundle));
    return parseBundleLink(bundle, text) === undefined ? [] : [`${bundle}/${basename(text)}`];
  });
}

/** @returns all trees on disk. */
export function listTrees(paths: HostPaths): { bundle: string; path: string }[] {
  return listDirectories(paths.bundles).flatMap((bundle) =>
    listDirectories(join(paths.bundles, bundle))
      .filter((name) => parseTreeName(name) !== undefined)
      .map((name) => ({ bundle, path: join(paths.bundles, bundle, name) })),
  );
}

/** @returns names of the directories in a directory; what else somebody put there is not ours to touch */
export function listDirectories(path: string): string[] {
  return listEntries(path)
    .filter((one) => one.isDirectory())
    .map((one) => one.name);
}

export interface Reserved {
  readonly generation: number;
  /** Whole seconds, later than any used before. */
  readonly mtimeSeconds: number;
}

/** A crash after it wastes a number; reusing one would let two trees share a name. */
export function reserveGeneration(host: Host): Reserved {
  const generation = host.ledger.read().nextGeneration;
  return { generation, mtimeSeconds: reserveMtime(host, { nextGeneration: generation + 1 }) };
}

/**
 * Takes the next time, now but always later than the last one used, also for trees that come back.
 * @returns whole seconds
 */
export function reserveMtime({ ledger, clock }: Host, also: Partial<Numbers> = {}): number {
  const known = ledger.read();
  const lastMtimeSeconds = Math.max(Math.floor(clock.nowMs() / 1000), known.lastMtimeSeconds + 1);
  ledger.write(changeNumbers(known, { ...also, lastMtimeSeconds }));
  return lastMtimeSeconds;
}

type Numbers = Pick<Ledger, 'nextGeneration' | 'lastMtimeSeconds'>;

/** @param numbers above every one ever used */
export function withNumbers(ledger: Ledger, numbers: Numbers): Ledger {
  return changeNumbers(ledger, numbers);
}
