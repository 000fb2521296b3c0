// What is active, bundle by bundle: the generation's links joined with the records of their releases.
// Reads only; a part that is missing is an error that says which, or what is left is told beside it.
import { join } from 'node:path';
import { isWritError, orUndefined, type WritError } from '../../core/errors.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { Host } from '../state/host.js';
import type { HostPaths } from '../state/paths.js';
import { notedLinks } from './generation-notes.js';
import { namesIn } from './generation-releases.js';
import {
  activeGenerationNumber,
  type Generation,
  type GenerationEntry,
  readActive,
  readGeneration,
} from './generations.js';
import { type ReleaseRecord, readManifest, readRecord } from './release-records.js';

export interface ActiveBundle {
  readonly entry: GenerationEntry;
  readonly record: ReleaseRecord;
  readonly manifest: Manifest;
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
export function bundlesOf(paths: HostPaths, generation: Generation): ReadonlyMap<string, ActiveBundle> {
  return new Map(
    generation.entries.map((entry) => {
      const name = entry.tree.release;
      const record = readRecord(paths, entry.bundle, name);
      return [entry.bundle, { entry, record, manifest: readManifest(paths, entry.bundle, name, record) }];
    }),
  );
}

/** What is active by its records alone: a manifest of ten thousand files is read only where its files are asked for. */
export interface ActiveReleases {
  readonly generation: Generation;
  /** By bundle. */
  readonly records: ReadonlyMap<string, ReleaseRecord>;
}

/** @throws WritError STATE_DAMAGED */
export function readActiveReleases(paths: HostPaths): ActiveReleases | undefined {
  const generation = readActive(paths);
  if (generation === undefined) return undefined;
  const records = generation.entries.map(({ bundle, tree }): [string, ReleaseRecord] => [
    bundle,
    readRecord(paths, bundle, tree.release),
  ]);
  return { generation, records: new Map(records) };
}

/** An active policy as far as it can be read. */
export interface PolicyLeft {
  readonly policy: ActivePolicy | undefined;
  /** Bundles of it whose tree or record is lost. */
  readonly lost: readonly string[];
  readonly error?: WritError;
}

/**
 * As readActivePolicy for a cycle that replaces what is lost: what can be read, and the names of what cannot.
 * @throws WritError STATE_DAMAGED when not even the `current` link is ours
 */
export function readWhatIsLeft({ paths, ledger }: Pick<Host, 'paths' | 'ledger'>): PolicyLeft {
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
      const one = attempt([entry.bundle], () => [...bundlesOf(paths, { ...none, entries: [entry] })], []);
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
  { policy }: PolicyLeft,
): ReadonlyMap<string, ActiveBundle> {
  if (policy !== undefined) return policy.bundles;
  const { settled } = ledger.read();
  if (settled === undefined) return new Map();
  return orUndefined(() => bundlesOf(paths, readGeneration(paths, settled))) ?? new Map();
}
