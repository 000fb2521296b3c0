// Two trees to publish, and the view of a host, for tests of publishing.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import { memoryTrustStore } from '../../../src/trust/store/trust-store.js';
import type { SampleRepository } from './sample-repository.js';

export const v1 = { 'block.rpz': 'one\n', 'views/eu.yaml': 'eu: 1\n' };
export const v2 = { 'block.rpz': 'two\n', 'views/eu.yaml': 'eu: 1\n', 'views/us.yaml': 'us: 1\n' };

function clientOf(repository: SampleRepository): RepositoryClient {
  const { url, clock, rootPath } = repository;
  const source = openRepositorySource(url, { clock, version: 'test' });
  return openRepositoryClient({ source, store: memoryTrustStore(fs.readFileSync(rootPath)), clock });
}

/** @returns the release that a new host finds, verified from the first root, with its archive */
export async function seenByHost(repository: SampleRepository, bundle = 'dns-edge', channel = 'stable') {
  const client = clientOf(repository);
  const { roles, signedAtMs } = await client.refresh();
  const target = await client.target(bundle, channel);
  if (target === undefined) return { roles, signedAtMs };
  const chunks: Buffer[] = [];
  for await (const chunk of client.streamTarget(target)) chunks.push(chunk);
  const archive = Buffer.concat(chunks);
  const digest = `sha256:${createHash('sha256').update(archive).digest('hex')}`;
  assert.equal(digest, target.digest);
  return { roles, signedAtMs, release: target.release, archive };
}
