// What is active, bundle by bundle: the generation's links joined with the records of their releases.
// Reads only; a part that is missing is an error that says which.
import type { Manifest } from '../core/manifest.js';
import { type Generation, type GenerationEntry, readActive } from './generations.js';
import type { HostPaths } from './paths.js';
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
      return [entry.bundle, { entry, record, manifest: readManifest(paths, entry.bundle, name) }];
    }),
  );
}
