// A signed change of the root and its repository, for tests of a commit.
import * as fs from 'node:fs';
import type { Proposal } from '../../../src/publisher/root/proposal-file.js';
import type { RootChange } from '../../../src/publisher/root/root-change.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import { memoryTrustStore } from '../../../src/trust/store/trust-store.js';
import type { TempDir } from '../disk/temp-dir.js';
import { newKey, proposal, signedBy } from './ceremony.js';
import type { SampleRepository } from './sample-repository.js';

export const dayMs = 86_400_000;
export const both = ['root-1.key', 'root-2.key'];

/** @returns a client that keeps its trust between refreshes */
export function hostOf(repository: SampleRepository): RepositoryClient {
  const { url, clock, rootPath } = repository;
  const source = openRepositorySource(url, { clock, version: 'test' });
  return openRepositoryClient({ source, store: memoryTrustStore(fs.readFileSync(rootPath)), clock });
}

/** @returns the version of each role after an unconditional refresh */
export async function versionsOf(host: RepositoryClient): Promise<Record<string, number>> {
  const { roles } = await host.refresh({ conditional: 'no' });
  return Object.fromEntries(Object.entries(roles).map(([role, { version }]) => [role, version]));
}

/** @returns the proposal of the change with both signatures */
export async function complete(repository: SampleRepository, change: Partial<RootChange>): Promise<Proposal> {
  return signedBy(repository, proposal(repository, change), both);
}

/** @returns the change that replaces the keys of snapshot and timestamp by new ones */
export function replacingOnlineKeys(dir: TempDir): Pick<RootChange, 'replace'> {
  return { replace: [replacing(dir, 'snapshot'), replacing(dir, 'timestamp')] };
}

/**
 * Creates a key in the folder.
 * @returns the replacement of the keys of one role by it
 */
export function replacing(dir: TempDir, role: 'targets' | 'snapshot' | 'timestamp', folder = 'keys') {
  return { role, keys: [newKey(dir, `${role}-2`, folder)] };
}
