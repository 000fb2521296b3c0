// A repository with a team that signs its own bundles, with keys that the publisher does not have.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { createKeyFile, newSeed } from '../../../src/publisher/keys/key-file.js';
import { type PublicKey, readPublicKey } from '../../../src/publisher/keys/public-key.js';
import { type ResignRoleResult, resignRole } from '../../../src/publisher/signing/resign-role.js';
import {
  type DelegateResult,
  type DelegationRequest,
  delegateRole,
} from '../../../src/publisher/teams/delegate.js';
import type { TempDir } from '../disk/temp-dir.js';
import { changeOptions, type SampleRepository, sampleRepository } from './sample-repository.js';

export interface Team {
  readonly role: string;
  /** Directory of the team's own key, without keys of the repository. */
  readonly keys: string;
  readonly publicKey: PublicKey;
}

/** @returns a team with a new key, to which nothing is delegated yet */
export function makeTeam(dir: TempDir, role: string, name = role): Team {
  const keys = dir.join(`team-${name}`);
  fs.mkdirSync(keys);
  const path = join(keys, `${role}.key`);
  createKeyFile({ path, seed: newSeed(), durableFs: createDurableFs() });
  return { role, keys, publicKey: readPublicKey(path) };
}

type Change = NonNullable<DelegationRequest['change']>;

/** Delegates to the team; `dns-*` by default. */
export function delegateTo(
  repository: SampleRepository,
  { role, publicKey }: Team,
  {
    shouldHandOver = false,
    keysDirectory,
    ...change
  }: Change & { shouldHandOver?: boolean; keysDirectory?: string } = {},
): Promise<DelegateResult> {
  const options = changeOptions(repository, keysDirectory === undefined ? {} : { keys: keysDirectory });
  return delegateRole(
    { role, shouldHandOver, change: { paths: ['dns-*/*'], keys: [publicKey], ...change } },
    options,
  );
}

export interface DelegatedRepository {
  readonly repository: SampleRepository;
  /** The team `dns-team`, which signs `dns-*`. */
  readonly team: Team;
}

/** @returns a new repository that delegates to a team, which has signed nothing */
export async function delegatedRepository(dir: TempDir): Promise<DelegatedRepository> {
  const repository = sampleRepository(dir);
  const team = makeTeam(dir, 'dns-team');
  await delegateTo(repository, team);
  return { repository, team };
}

/** @returns as delegatedRepository, with serial 1 of `dns-edge` that the team signed and that hosts find */
export async function publishedByTeam(dir: TempDir): Promise<DelegatedRepository> {
  const { repository, team } = await delegatedRepository(dir);
  await repository.publish({ file: 'one' }, { keys: team.keys });
  await repository.refresh();
  return { repository, team };
}

/** Signs the team's role as `writ sign --role` does. */
export function signByTeam(repository: SampleRepository, { role, keys }: Team): Promise<ResignRoleResult> {
  return resignRole(role, changeOptions(repository, { keys }));
}
