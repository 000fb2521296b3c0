// Generations on disk: the active one, its links, the next number, and the creation of a new one. Never writes into an
// existing tree or generation, and never renames or removes the active generation.
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

/** One link of a generation: a bundle and its tree. */
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

/**
 * @returns the number that `current` names; undefined if there is no active generation
 * @throws WritError STATE_DAMAGED if `current` is not a link that Writ created
 */
export function activeGenerationNumber(paths: HostPaths): number | undefined {
  let text: string;
  try {
    text = fs.readlinkSync(paths.current);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw foreignLinkError(paths.current, error);
  }
  const generation = parseGenerationLink(text);
  if (generation === undefined) throw foreignLinkError(paths.current, undefined);
  return generation;
}

function foreignLinkError(path: string, cause: unknown): WritError {
  return new WritError('STATE_DAMAGED', `${path} is not a link that Writ made`, {
    facts: { path },
    hint: 'Move it away: Writ never replaces a file that it did not create.',
    cause,
  });
}

/** @returns the active generation; undefined if there is none. @throws WritError STATE_DAMAGED */
export function readActive(paths: HostPaths): Generation | undefined {
  const number = activeGenerationNumber(paths);
  return number === undefined ? undefined : readGeneration(paths, number);
}

/**
 * Reads the links of a generation.
 * @throws WritError STATE_DAMAGED if the directory or a tree is missing, or an entry is not a link that Writ created
 */
export function readGeneration(paths: HostPaths, number: number): Generation {
  const path = join(paths.generations, String(number));
  return { number, path, entries: readDirectory(path).map((bundle) => readEntry(paths, number, bundle)) };
}

/** Reads one link of a generation. @throws WritError STATE_DAMAGED if its tree is missing or Writ did not create the link */
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

/** @returns the text of the link; empty, which is no valid link of Writ, for an entry that is no link */
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

/**
 * Creates the directories of generations, trees and archives. A cycle calls this too, because one may have been removed
 * while the agent runs.
 * @throws WritError DISK_*
 */
export function createPolicyDirectories(
  { policy, generations, bundles, archives }: HostPaths,
  durable: DurableFs,
): void {
  for (const path of [policy, generations, bundles]) durable.ensureDirectory('prepare.public', path, 0o755);
  durable.ensureDirectory('prepare.private', archives, 0o700);
}

/** @returns the numbers of all generations on disk, ascending */
export function listGenerations(paths: HostPaths): number[] {
  return listEntries(paths.generations)
    .map(({ name }) => name)
    .filter((name) => /^[1-9][0-9]{0,15}$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Creates the directory of a new generation in staging and renames it into place. Its trees must be in place already.
 * @param options.staging directory of this cycle
 * @param options.trees name of the tree directory by bundle
 * @throws WritError DISK_*
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

/** The commit point: moves `current` by one create and one rename in `policy/`, durable when it returns. @throws WritError DISK_* */
export function pointCurrentAt(
  paths: HostPaths,
  durable: DurableFs,
  { generation, cycle, beforeRename }: LinkMove,
): void {
  const options = { temporaryName: `.current-${cycle}`, beforeRename };
  durable.replaceLink('swap.link', paths.current, generationLink(generation), options);
}

/** Removes `current` after a failed first activation, before which the host had no policy. @throws WritError DISK_* */
export function removeCurrent(paths: HostPaths, durable: DurableFs): void {
  durable.removeFile('swap.unlink', paths.current);
}

/** @returns the trees that the links of a generation name, as `bundle/directory`, even those that do not exist */
export function linkedTrees(paths: HostPaths, number: number): string[] {
  const path = join(paths.generations, String(number));
  return readDirectory(path).flatMap((bundle) => {
    const text = readBundleLink(join(path, bundle));
    return parseBundleLink(bundle, text) === undefined ? [] : [`${bundle}/${basename(text)}`];
  });
}

/** @returns all trees on disk */
export function listTrees(paths: HostPaths): { bundle: string; path: string }[] {
  return listDirectories(paths.bundles).flatMap((bundle) =>
    listDirectories(join(paths.bundles, bundle))
      .filter((name) => parseTreeName(name) !== undefined)
      .map((name) => ({ bundle, path: join(paths.bundles, bundle, name) })),
  );
}

/** @returns the names of the directories in a directory; other entries are not from Writ and must stay untouched */
export function listDirectories(path: string): string[] {
  return listEntries(path)
    .filter((one) => one.isDirectory())
    .map((one) => one.name);
}

export interface Reserved {
  readonly generation: number;
  /** Epoch seconds, later than any used before. */
  readonly mtimeSeconds: number;
}

/**
 * Reserves the next generation number and modification time in the ledger. A crash after it loses the number. A reused
 * number would give two trees the same name.
 * @throws WritError DISK_*
 */
export function reserveGeneration(host: Host): Reserved {
  const generation = host.ledger.read().nextGeneration;
  return { generation, mtimeSeconds: reserveMtime(host, { nextGeneration: generation + 1 }) };
}

/**
 * Reserves the next modification time in the ledger: now, or one second after the last one if that is later. Trees
 * that become active again use it too.
 * @param also further numbers to write in the same change of the ledger
 * @returns epoch seconds
 * @throws WritError DISK_*
 */
export function reserveMtime({ ledger, clock }: Host, also: Partial<Numbers> = {}): number {
  const known = ledger.read();
  const lastMtimeSeconds = Math.max(Math.floor(clock.nowMs() / 1000), known.lastMtimeSeconds + 1);
  ledger.write(changeNumbers(known, { ...also, lastMtimeSeconds }));
  return lastMtimeSeconds;
}

type Numbers = Pick<Ledger, 'nextGeneration' | 'lastMtimeSeconds'>;

/**
 * Sets the next numbers of the ledger, as a rebuild of a lost ledger needs. Does not check them. Throws nothing.
 * @param numbers both must be higher than every number ever used; `lastMtimeSeconds` is in epoch seconds
 * @returns the changed ledger; the other members stay. The caller writes it
 */
export function withNumbers(ledger: Ledger, numbers: Numbers): Ledger {
  return changeNumbers(ledger, numbers);
}
