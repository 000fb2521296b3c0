// The files that deltas copy from: extracted from archives of older releases into one file on disk, each content once.
// Memory does not grow with them. The file is unlinked right after it is opened, so that no crash leaves it.
import * as fs from 'node:fs';
import { type ByteSource, bytesAsSource } from '../../core/delta/byte-source.js';
import type { DeltaRelease } from '../../core/delta/delta-format.js';
import type { ArchiveLimits } from '../../core/limits.js';
import type { Digest } from '../../core/names.js';
import type { ManifestFile } from '../../core/release/manifest.js';
import type { More } from '../../core/work-report.js';
import { createArchiveFile } from '../archive/archive-bytes.js';
import { readStoredFiles, type StoredRelease } from '../archive/archive-reader.js';
import type { RepositoryLayout } from '../repository/repository-layout.js';
import { fileAsSource } from './file-source.js';

/** A possible base release of a delta. */
export interface Base extends StoredRelease {
  readonly read: DeltaRelease;
}

export interface BaseFiles {
  /** @returns false where the archive of the base differs from its manifest */
  add(base: Base, sources: readonly ManifestFile[], more?: More): Promise<boolean>;
  /** @returns the added content of a file; empty without a file */
  source(file: Pick<ManifestFile, 'digest' | 'sizeBytes'> | undefined): ByteSource;
  close(): void;
}

const op = 'repo.delta:base';

/**
 * Creates a temporary file for the content of base releases. The file has no name any more when this function returns.
 * @param path a new file; its file system must have enough free space for the added files
 * @returns the empty file, which its owner closes. `source` throws a RangeError for a file that was not added
 * @throws WritError DISK_* if the file cannot be created, for example because it exists
 */
export function openBaseFiles(
  path: string,
  { layout, limits }: { readonly layout: RepositoryLayout; readonly limits: ArchiveLimits },
): BaseFiles {
  const { descriptor, write } = createArchiveFile(path, op);
  fs.rmSync(path);
  const startOf = new Map<Digest, number>();
  let end = 0;
  const take = (file: ManifestFile, more?: More): ((chunk: Buffer) => void) => {
    startOf.set(file.digest, end);
    return (chunk) => {
      write(chunk);
      end += chunk.length;
      more?.(chunk.length);
    };
  };
  return {
    add: async (base, sources, more) => {
      const missing = sources.filter(({ digest }) => !startOf.has(digest));
      // Several paths may have the same content.
      const wanted = new Map(
        [...new Map(missing.map((file) => [file.digest, file])).values()].map((file) => [file.path, file]),
      );
      if (wanted.size === 0) return true;
      const verdict = await readStoredFiles(layout, base, { limits, wanted }, (file) => take(file, more));
      if (verdict === undefined) for (const { digest } of wanted.values()) startOf.delete(digest);
      return verdict !== undefined;
    },
    source: (file) => {
      if (file === undefined) return bytesAsSource(Buffer.alloc(0));
      const start = startOf.get(file.digest);
      if (start === undefined) throw new RangeError(`${file.digest} was not added`);
      const part = { descriptor, start, length: file.sizeBytes };
      return fileAsSource(part, () => new RangeError(`${path} became shorter`));
    },
    close: () => fs.closeSync(descriptor),
  };
}
