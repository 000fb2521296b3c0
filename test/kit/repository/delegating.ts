// The state of a repository with teams.
import { liveReleasesOf } from '../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../src/publisher/repository/repository-layout.js';
import {
  type RepositoryState,
  readRepositoryState,
} from '../../../src/publisher/repository/repository-state.js';
import type { SampleRepository } from './sample-repository.js';

export const dayMs = 86_400_000;

/** @returns the state of the repository on disk */
export function stateOf(repository: SampleRepository): RepositoryState {
  return readRepositoryState(layoutOf(repository.directory));
}

/** @returns the releases that hosts find, as `bundle serial role` */
export function live(repository: SampleRepository): string[] {
  return liveReleasesOf(stateOf(repository)).map(
    ({ role, release }) => `${release.bundle} ${release.serial} ${role}`,
  );
}
