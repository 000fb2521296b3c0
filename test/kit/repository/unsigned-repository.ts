// A directory with the form of a repository, without keys and signatures: the server reads names, bytes and expiry, and
// verifies no signature.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const archiveDigest = 'a'.repeat(64);
export const archiveFile = `targets/dns-edge/${archiveDigest}.stable.tar.br`;
export const archiveBytes = '0123456789abcdef';

/** Far in the future, because tests with the real clock must always pass. */
export const fixtureExpires = '2999-01-01T00:00:00Z';

export interface RoleFile {
  readonly version: number;
  readonly expires?: string;
  readonly [member: string]: unknown;
}

/** Replaces a file as the publisher does: temporary name, then rename. */
export function replaceFile(repository: string, file: string, bytes: string | Uint8Array): void {
  const temporary = join(repository, 'metadata', '.writ-tmp-test');
  writeFileSync(temporary, bytes);
  renameSync(temporary, join(repository, file));
}

/** @returns the bytes of a metadata file with this `signed` object. */
export function roleBytes(type: string, role: RoleFile): string {
  return JSON.stringify({
    signatures: [],
    signed: { _type: type, expires: fixtureExpires, ...role },
  });
}

/** Writes root 1, targets 1, snapshot 1, timestamp 1 and one archive. */
export function writeRepository(repository: string): void {
  mkdirSync(join(repository, 'metadata'), { recursive: true });
  mkdirSync(join(repository, 'targets/dns-edge'), { recursive: true });
  writeFileSync(join(repository, '.lock'), 'secret of the lock');
  writeFileSync(join(repository, archiveFile), archiveBytes);
  const files = {
    '1.root': { version: 1 },
    '1.targets': { version: 1 },
    '1.snapshot': { version: 1, meta: { 'targets.json': { version: 1 } } },
    timestamp: { version: 1, meta: { 'snapshot.json': { version: 1 } } },
  };
  for (const [name, role] of Object.entries(files)) {
    const type = name.replace(/^1\./, '');
    writeFileSync(join(repository, 'metadata', `${name}.json`), roleBytes(type, role));
  }
}
