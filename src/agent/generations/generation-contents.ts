// What a generation holds, bundle by bundle: its links joined with the records of their releases, and what one brings that
// another has not. Reads only; a part that is missing is an error that says which, or what is left is told beside it.

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
  /** Proven already, and parsed when somebody asks: a cycle with nothing to do does not. */
  readonly manifest: Manifest;
  /** The same as it was signed. */
  readonly manifestBytes: Buffer;
  readonly stamped: ReleaseInfo['stamped'];
}

export interface ActivePolicy {
  readonly generation: Generation;
  readonly bundles: ReadonlyMap<string, ActiveBundle>;
}

/** @throws WritError STATE_DAMAGED */
export function readActivePolicy(paths: HostPaths): ActivePolicy | undefined {
  const generation = readActive(paths);
  return generation === undefined ? undefined : { generation, bundles: bundlesOf(paths, generation) };
}

/** @throws WritError STATE_DAMAGED when the record of a release is not there */
export function bundlesOf(
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

/** What is active by its records alone: a manifest of ten thousand files is read only where its files are asked for. */
export interface ActiveReleases {
  /** With the bundles whose link and tree are there. */
  readonly generation: Generation;
  /** By bundle, those that can be read. */
  readonly records: ReadonlyMap<string, ReleaseRecord>;
  /** Of what cannot: a policy that is in use is active, whatever became of one part of it. */
  readonly errors: readonly WritError[];
}

/** @throws WritError STATE_DAMAGED when not even the generation can be read */
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

/** An active policy as far as it can be read. */
export interface ReadablePolicy {
  readonly policy: ActivePolicy | undefined;
  /** Bundles of it whose tree or record is lost. */
  readonly lost: readonly string[];
  readonly error?: WritError;
}

/**
 * As readActivePolicy for a cycle that replaces what is lost: what can be read, and the names of what cannot.
 * @throws WritError STATE_DAMAGED when not even the `current` link is ours
 */
export function readWhatIsReadable({ paths, ledger }: Pick<Host, 'paths' | 'ledger'>): ReadablePolicy {
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
  const names = noted.length > 0 ? noted : namesIn(path);
  const generation = attempt(names, () => readGeneration(paths, number), none);
  const bundles = new Map(
    generation.entries.flatMap((entry) => {
      const one = attempt(
        [entry.bundle],
        () => [...bundlesOf(paths, { ...none, entries: [entry] }, openProvenManifest)],
        [],
      );
      return one;
    }),
  );
  return { policy: { generation, bundles }, lost, ...(first ? { error: first } : {}) };
}

/**
 * What a candidate keeps of the bundles that are not replaced. When a hand has taken `current` away, that is the
 * generation it led to: a bundle that cannot be fetched just now must not leave the policy for it.
 */
export function bundlesToKeep(
  { paths, ledger }: Pick<Host, 'paths' | 'ledger'>,
  { policy }: ReadablePolicy,
): ReadonlyMap<string, ActiveBundle> {
  if (policy !== undefined) return policy.bundles;
  const { settled } = ledger.read();
  if (settled === undefined) return new Map();
  return orUndefined(() => bundlesOf(paths, readGeneration(paths, settled))) ?? new Map();
}

/** @returns the releases whose link and record can be read, sorted by bundle */
export function releasesNamedBy(paths: HostPaths, generation: number): ReleaseInfo[] {
  const path = join(paths.generations, String(generation));
  return namesIn(path).flatMap((bundle) => {
    const tree = parseBundleLink(bundle, linkText(join(path, bundle)));
    if (tree === undefined) return [];
    return orUndefined(() => readRecord(paths, bundle, tree.release))?.release ?? [];
  });
}

/** @returns serial and digest of the releases that a generation names, by bundle */
export function acceptedIn(paths: HostPaths, generation: number): Map<string, AcceptedRelease> {
  return new Map(
    releasesNamedBy(paths, generation).map(({ bundle, serial, manifest }) => {
      return [bundle, { serial, manifestDigest: manifest.digest }];
    }),
  );
}

/** @returns the names in the directory of a generation, sorted; none where it cannot be read */
export function namesIn(path: string): string[] {
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
 * What a move brings: the releases that its generation has and the one before has not.
 * @param from absent at a first activation
 */
export function releasesBrought(paths: HostPaths, move: { from?: number; to: number }): ReleaseInfo[] {
  const before = move.from === undefined ? [] : releasesNamedBy(paths, move.from);
  return releasesNamedBy(paths, move.to).filter(
    ({ bundle, manifest }) =>
      !before.some((one) => one.bundle === bundle && one.manifest.digest === manifest.digest),
  );
}

/** @returns which release of each bundle a generation names, by its links alone: no record is read */
export function releaseNamesIn(paths: HostPaths, generation: number): Map<string, string> {
  const path = join(paths.generations, String(generation));
  const names = namesIn(path).map((bundle): [string, string] => {
    const tree = parseBundleLink(bundle, linkText(join(path, bundle)));
    return [bundle, tree?.release ?? ''];
  });
  return new Map(names);
}
