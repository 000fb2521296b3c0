// Computes the digests of a target while it arrives, and compares length and digests with the signed ones (specification 5.7.3).
// Pure.
import { createHash, type Hash } from 'node:crypto';
import { WritError } from '../errors.js';
import { knownAlgorithms } from './metadata-checks.js';
import type { TargetFile } from './tuf-metadata.js';

export interface TargetDigest {
  update(chunk: Uint8Array): void;
  /** @returns an independent digest of the bytes so far */
  copy(): TargetDigest;
  /**
   * Must be called once, after the last byte.
   * @throws WritError DOWNLOAD_TRUNCATED, DOWNLOAD_TOO_LARGE, DOWNLOAD_DIGEST
   */
  requireSame(): void;
}

/**
 * @param path of the target, for messages
 * @returns a digest of each signed algorithm that is known; a difference in one of them is an error
 * @throws WritError TARGET_MALFORMED if no algorithm is known, because the content cannot be verified then
 */
export function openTargetDigest(path: string, file: TargetFile): TargetDigest {
  const known = knownAlgorithms
    .filter((name) => Object.hasOwn(file.hashes, name))
    .map((name) => ({ name, digest: createHash(name) }));
  if (known.length === 0) {
    throw new WritError('TARGET_MALFORMED', `${path}: signed with no digest that is known here`, {
      facts: { target: path, member: 'hashes', expected: knownAlgorithms.join(' or ') },
    });
  }
  return digestFrom(path, file, { known, actualBytes: 0 });
}

interface SoFar {
  readonly known: readonly { readonly name: string; readonly digest: Hash }[];
  readonly actualBytes: number;
}

function digestFrom(path: string, file: TargetFile, { known, ...before }: SoFar): TargetDigest {
  let { actualBytes } = before;
  return {
    copy: () => {
      const copies = known.map(({ name, digest }) => ({ name, digest: digest.copy() }));
      return digestFrom(path, file, { known: copies, actualBytes });
    },
    update: (chunk) => {
      actualBytes += chunk.length;
      for (const { digest } of known) digest.update(chunk);
    },
    requireSame: () => {
      if (actualBytes !== file.length) {
        const facts = { target: path, expected: file.length, actual: actualBytes };
        const code = actualBytes < file.length ? 'DOWNLOAD_TRUNCATED' : 'DOWNLOAD_TOO_LARGE';
        throw new WritError(code, `${path}: ${actualBytes} bytes, ${file.length} were signed`, { facts });
      }
      for (const { name, digest } of known) {
        const actual = digest.digest('hex');
        if (actual === file.hashes[name]) continue;
        const facts = { target: path, expected: `${name}:${file.hashes[name]}`, actual: `${name}:${actual}` };
        throw new WritError('DOWNLOAD_DIGEST', `${path}: its digest does not match the signed one`, {
          facts,
        });
      }
    },
  };
}
