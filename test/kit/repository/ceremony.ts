// Key holders of one repository, for tests of root ceremonies. Their keys are files in the directory of the sample
// repository, or are made here.
import * as fs from 'node:fs';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import type { KeyDirectory } from '../../../src/publisher/keys/key-directory.js';
import { makeKey } from '../../../src/publisher/keys/new-key.js';
import { type PublicKey, readPublicKey } from '../../../src/publisher/keys/public-key.js';
import {
  type CommitOptions,
  type CommitResult,
  commitRoot,
} from '../../../src/publisher/root/commit-root.js';
import { encodeProposal, type Proposal, parseProposal } from '../../../src/publisher/root/proposal-file.js';
import { addSignatures, type TrustedProposal } from '../../../src/publisher/root/proposal-signatures.js';
import { openSigners, type ProposeOptions, proposeRoot } from '../../../src/publisher/root/propose-root.js';
import { noChange, type RootChange } from '../../../src/publisher/root/root-change.js';
import type { TempDir } from '../disk/temp-dir.js';
import type { SampleRepository } from './sample-repository.js';

export const noPassphrases: KeyDirectory['passphrases'] = { ask: async () => undefined };

/** @returns the public part of a new key; its secret part is in `folder` as NAME.key */
export function newKey(dir: TempDir, name: string, folder = 'keys'): PublicKey {
  makeKey({ path: dir.join(folder, `${name}.key`), name, durableFs: createDurableFs() });
  return readPublicKey(dir.join(folder, `${name}.pub`));
}

/** @returns an unsigned proposal of the change by the keys of the sample repository */
export function proposal(
  repository: SampleRepository,
  change: Partial<RootChange>,
  given: Partial<ProposeOptions> = {},
): TrustedProposal {
  return proposeRoot({
    repository: repository.directory,
    keysDirectory: repository.keys,
    change: { ...noChange, ...change },
    danger: 'refused',
    clock: repository.clock,
    ...given,
  });
}

/**
 * @param files names of key files in the repository's keys, as `root-1.key`
 * @returns the signed proposal as its key holder returns it
 */
export async function signedBy(
  repository: SampleRepository,
  trusted: TrustedProposal,
  files: readonly string[],
): Promise<Proposal> {
  const keyFiles = files.map((name) => `${repository.keys}/${name}`);
  const { signers } = await openSigners(trusted, { keyFiles, external: [], passphrases: noPassphrases });
  const signed = await addSignatures(trusted, signers);
  return parseProposal(encodeProposal(signed.proposal));
}

/** Commits the proposal with the keys of the sample repository. Does not wait for its lock. */
export function commit(
  repository: SampleRepository,
  signed: Proposal,
  given: Partial<CommitOptions> = {},
): Promise<CommitResult> {
  return commitRoot({
    repository: repository.directory,
    keys: keysAt(repository.keys),
    proposal: signed,
    unsignedRoles: 'refused',
    clock: repository.clock,
    durableFs: createDurableFs(),
    lockWaitMs: 0,
    ...given,
  });
}

/** @returns a directory of unencrypted keys */
export function keysAt(path: string): KeyDirectory {
  return { path, passphrases: noPassphrases };
}

/** @returns versions of the root files in the repository */
export function rootVersions(repository: SampleRepository): number[] {
  return fs
    .readdirSync(`${repository.directory}/metadata`)
    .flatMap((name) => /^(\d+)\.root\.json$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}
