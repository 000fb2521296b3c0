// A repository client that has one archive in memory, and ends or spoils each transfer as the test says.
import type { OpenTransfer, SeenVersion, TransferStart } from '../../../src/trust/download.js';
import type { RepositoryClient } from '../../../src/trust/repository-client.js';

export interface Transfer {
  /** Bytes of this transfer before it ends; all by default. */
  readonly bytes?: number;
  /** Thrown at its end; without one it just ends. */
  readonly error?: Error;
  /** Which version it says to send. */
  readonly seen?: SeenVersion;
  /** `start`: it begins there, whatever was asked for. */
  readonly begins?: 'start';
}

export interface MemorySource extends Pick<RepositoryClient, 'download'> {
  /** The offset of every transfer so far. */
  readonly offsets: readonly number[];
  /** What each was asked with. */
  readonly starts: readonly TransferStart[];
  readonly open: OpenTransfer;
}

/**
 * @param archive what the server has
 * @param transfers one a call; after the last, transfers are whole
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
