// A repository client with one archive in memory, which ends or corrupts each transfer as a test defines.
import type { OpenTransfer, SeenVersion, TransferStart } from '../../../src/trust/download.js';
import type { RepositoryClient } from '../../../src/trust/repository-client.js';

export interface Transfer {
  /** Bytes of this transfer before it ends; all by default. */
  readonly bytes?: number;
  /** Thrown at the end; without it the transfer ends normally. */
  readonly error?: Error;
  /** The version that it reports. */
  readonly seen?: SeenVersion;
  /** `start`: it begins at byte 0, whatever offset was requested. */
  readonly begins?: 'start';
}

export interface MemorySource extends Pick<RepositoryClient, 'download'> {
  /** The offset of each transfer so far. */
  readonly offsets: readonly number[];
  /** The arguments of each transfer so far. */
  readonly starts: readonly TransferStart[];
  readonly open: OpenTransfer;
}

/**
 * @param archive the complete content
 * @param transfers one for each call; later transfers are complete
 */
export function memorySource(archive: Buffer, transfers: readonly Transfer[] = []): MemorySource {
  const offsets: number[] = [];
  const starts: TransferStart[] = [];
  async function* open(start: TransferStart, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { bytes = archive.length, error, seen, begins } = transfers[offsets.length] ?? {};
    offsets.push(start.offset);
    starts.push(start);
    const offset = begins === 'start' ? 0 : start.offset;
    const rest = archive.subarray(offset, Math.min(offset + bytes, archive.length));
    if (rest.length > 0) start.onBegin({ offset, ...(seen === undefined ? {} : { seen }) });
    for (let at = 0; at < rest.length; at += 10_000) {
      signal.throwIfAborted();
      yield rest.subarray(at, at + 10_000);
    }
    if (error !== undefined) throw error;
  }
  return {
    offsets,
    starts,
    open,
    download: async (_target, receive, signal = new AbortController().signal) => {
      await receive(open, signal, 'no');
      return [];
    },
  };
}
