// The bytes of one target of any publisher as the client loads them: found by its search, with the signed length and digests.
import { WritError } from '../../../src/core/errors.js';
import { openTargetDigest } from '../../../src/core/tuf/target-digest.js';
import type { RepositoryClient } from '../../../src/trust/repository-client.js';

/**
 * Finds and downloads a target after a refresh.
 * @throws WritError TARGET_UNKNOWN, TARGET_MALFORMED, TARGET_MISSING, DOWNLOAD_*, and exceptions of `find`
 */
export async function targetBytes(
  client: Pick<RepositoryClient, 'find' | 'streamTarget'>,
  path: string,
): Promise<Buffer> {
  const target = await client.find(path);
  if (target === undefined) throw new WritError('TARGET_UNKNOWN', `the repository lists no ${path}`);
  const digest = openTargetDigest(target.path, target.file);
  const chunks: Buffer[] = [];
  for await (const chunk of client.streamTarget(target)) {
    digest.update(chunk);
    chunks.push(chunk);
  }
  digest.requireSame();
  return Buffer.concat(chunks);
}
