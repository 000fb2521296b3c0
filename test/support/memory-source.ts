// A repository client that has one archive in memory, and ends or spoils each transfer as the test says.
import type { RepositoryClient } from '../../src/trust/repository-client.js';

export interface Transfer {
  /** Bytes of this transfer before it ends; all by default. */
  readonly bytes?: number;
  /** Thrown at its end; without one it just ends. */
  readonly error?: Error;
}

export interface MemorySource extends Pick<RepositoryClient, 'streamTarget'> {
  /** The offset of every transfer so far. */
  readonly offsets: readonly number[];
}

/**
 * @param archive what the server has
 * @param transfers one a call; after the last, transfers are whole
 */
export function memorySource(archive: Buffer, transfers: readonly Transfer[] = []): MemorySource {
  const offsets: number[] = [];
  return {
    offsets,
    async *streamTarget(_target, options = {}) {
      const offset = options.offset ?? 0;
      const { bytes = archive.length, error } = transfers[offsets.length] ?? {};
      offsets.push(offset);
      const rest = archive.subarray(offset, Math.min(offset + bytes, archive.length));
      for (let at = 0; at < rest.length; at += 10_000) {
        options.signal?.throwIfAborted();
        yield rest.subarray(at, at + 10_000);
      }
      if (error !== undefined) throw error;
    },
  };
}
