// The contents of a generation by bundle: its links joined with the records of their releases, and the difference between
// two generations. Reads only. A missing part is an error, or is listed beside the readable rest.

import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, isWritError, orUndefined, type WritError } from '../../core/errors.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { Host } from '../state/host.js';
import type { AcceptedRelease } from '../state/ledger.js';
import { type HostPaths, parseBundleLink } from '../state/paths.js';
import { notedLinks } from './generation-notes.js';
import {
  activeGenerationNumber,
  type Generation,
  type GenerationEntry,
  readActive,
  readDirectory,
  readEntry,
  readGeneration,
} from './generations.js';
import { openProvenManifest } from './proven-manifests.js';
import { openManifest, type ReleaseRecord, readRecord } from './release-records.js';

export interface ActiveBundle {
  readonly entry: GenerationEntry;
  readonly record: ReleaseRecord;
  /** Matches its signed digest. Parsed at the first access, because a cycle without a change does not need it. */
  readonly manifest: Manifest;
  /** The signed bytes of the manifest. */
  readonly manifestBytes: Buffer;
  readonly stamped: ReleaseInfo['stamped'];
}

export interface ActivePolicy {
  readonly generation: Generation;
  readonly bundles: ReadonlyMap<string, ActiveBundle>;
}

/** @returns undefined if no generation is active. @throws WritError STATE_DAMAGED if any part is missing or unreadable */
export function readActivePolicy(paths: HostPaths): ActivePolicy | undefined {
  const generation = readActive(paths);
  return generation === undefined ? undefined : { generation, bundles: readBundles(paths, generation) };
}

/** Joins each link of a generation with its record and manifest. @throws WritError STATE_DAMAGED if one is missing */
export function readBundles(
  paths: HostPaths,
  generation: Generation,
  open: typeof openManifest = openManifest,
): ReadonlyMap<string, ActiveBundle> {
  return new Map(
    generation.entries.map((entry) => {
      const name = entry.tree.release;
      const record = readRecord(paths, entry.bundle, name);
      const manifest = open(paths, entry.bundle, name, record.release.manifest.digest);
      const { stamped } = record.release;
      return [
        entry.bundle,
        {
          ...{ entry, record, stamped },
          get manifestBytes() {
            return manifest.bytes;
          },
          get manifest() {
            return manifest.parsed();
          },
        },
      ];
    }),
  );
}

/** The active releases without their manifests, which can list ten thousand files each. */
export interface ActiveReleases {
  /** Contains the bundles that have both a link and a tree. */
  readonly generation: Generation;
  /** The readable records by bundle. */
  readonly records: ReadonlyMap<string, ReleaseRecord>;
  /** One error for each unreadable part. The policy is active all the same, because workers use it. */
  readonly errors: readonly WritError[];
}

/** @returns undefined if no generation is active. @throws WritError STATE_DAMAGED if the generation itself is unreadable */
export function readActiveReleases(paths: HostPaths): ActiveReleases | undefined {
  const number = activeGenerationNumber(paths);
  if (number === undefined) return undefined;
  const path = join(paths.generations, String(number));
  const errors: WritError[] = [];
  const attempt = <T>(read: () => T): T[] => {
    try {
      return [read()];
    } catch (error) {
      if (!isWritError(error)) throw error;
      errors.push(error);
      return [];
    }
  };
  const entries = readDirectory(path).flatMap((bundle) => attempt(() => readEntry(paths, number, bundle)));
  const records = entries.flatMap(({ bundle, tree }) =>
    attempt((): [string, ReleaseRecord] => [bundle, readRecord(paths, bundle, tree.release)]),
  );
  return { generation: { number, path, entries }, records: new Map(records), errors };
}

/** The readable part of the active policy. */
export interface PartialPolicy {
  /** Undefined if no generation is active or the generation itself is unreadable. */
  readonly policy: ActivePolicy | undefined;
  /** Bundles with a lost tree or record. */
  readonly lost: readonly string[];
  /** The first error; left out if everything is readable. */
  readonly error?: WritError;
}

/**
 * Reads the active policy for a cycle that replaces lost bundles: the readable bundles, and the names of the others.
 * @throws WritError STATE_DAMAGED if Writ did not create the `current` link
 */
export function readPartialPolicy({ paths, ledger }: Pick<Host, 'paths' | 'ledger'>): PartialPolicy {
  const number = activeGenerationNumber(paths);
  if (number === undefined) return { policy: undefined, lost: [] };
  const path = join(paths.generations, String(number));
  const lost: string[] = [];
  let first: WritError | undefined;
  const attempt = <T>(names: readonly string[], read: () => T, otherwise: T): T => {
    try {
      return read();
    } catch (error) {
      if (!isWritError(error)) throw error;
      first ??= error;
      lost.push(...names);
      return otherwise;
    }
  };
  const none: Generation = { number, path, entries: [] };
  const noted = Object.keys(notedLinks(ledger.read(), number) ?? {});
  const names = noted.length > 0 ? noted : listEntryNames(path);
  const generation = attempt(names, () => readGeneration(paths, number), none);
  const bundles = new Map(
    generation.entries.flatMap((entry) => {
      const one = attempt(
        [entry.bundle],
        () => [...readBundles(paths, { ...none, entries: [entry] }, openProvenManifest)],
        [],
      );
      return one;
    }),
  );
  return { policy: { generation, bundles }, lost, ...(first ? { error: first } : {}) };
}

/**
 * Lists the bundles that a candidate takes over unless the cycle replaces them. If a person removed `current`, these are
 * the bundles of the generation that it named: a bundle that cannot be fetched now must stay in the policy.
 */
export function listRetainedBundles(
  { paths, ledger }: Pick<Host, 'paths' | 'ledger'>,
  { policy }: PartialPolicy,
): ReadonlyMap<string, ActiveBundle> {
  if (policy !== undefined) return policy.bundles;
  const { settled } = ledger.read();
  if (settled === undefined) return new Map();
  return orUndefined(() => readBundles(paths, readGeneration(paths, settled))) ?? new Map();
}

/** @returns the releases with a readable link and record, sorted by bundle */
export function readNamedReleases(paths: HostPaths, generation: number): ReleaseInfo[] {
  const path = join(paths.generations, String(generation));
  return listEntryNames(path).flatMap((bundle) => {
    const tree = parseBundleLink(bundle, linkText(join(path, bundle)));
    if (tree === undefined) return [];
    return orUndefined(() => readRecord(paths, bundle, tree.release))?.release ?? [];
  });
}

/** @returns serial and digest of each release with a readable link and record, by bundle */
export function readAcceptedReleases(paths: HostPaths, generation: number): Map<string, AcceptedRelease> {
  return new Map(
    readNamedReleases(paths, generation).map(({ bundle, serial, manifest }) => {
      return [bundle, { serial, manifestDigest: manifest.digest }];
    }),
  );
}

/** @returns the names in the directory of a generation, sorted; empty if it is unreadable */
export function listEntryNames(path: string): string[] {
  try {
    return fs.readdirSync(path).sort();
  } catch (error) {
    if (isSystemError(error)) return [];
    throw error;
  }
}

function linkText(path: string): string {
  try {
    return fs.readlinkSync(path);
  } catch (error) {
    if (isSystemError(error)) return '';
    throw error;
  }
}

/**
 * Lists the releases that a move activates: those of its target that the generation before it does not have.
 * @param move.from left out at a first activation
 */
export function findNewReleases(paths: HostPaths, move: { from?: number; to: number }): ReleaseInfo[] {
  const before = move.from === undefined ? [] : readNamedReleases(paths, move.from);
  return readNamedReleases(paths, move.to).filter(
    ({ bundle, manifest }) =>
      !before.some((one) => one.bundle === bundle && one.manifest.digest === manifest.digest),
  );
}

/** @returns release directory name by bundle, from the links alone; an empty text for an invalid link */
export function readReleaseNames(paths: HostPaths, generation: number): Map<string, string> {
  const path = join(paths.generations, String(generation));
  const names = listEntryNames(path).map((bundle): [string, string] => {
    const tree = parseBundleLink(bundle, linkText(join(path, bundle)));
    return [bundle, tree?.release ?? ''];
  });
  return new Map(names);
}
