// Downloads a target from one mirror after the other until the receiver accepts it. Has the deadlines of mirrors. The receiver
// stores the bytes and verifies their digest.
import type { TransportLimits } from '../core/limits.js';
import type { MirrorFailure } from './mirrors/mirror-failures.js';
import type { Mirrors } from './mirrors/mirrors.js';
import type { SignedTarget } from './signed-target.js';
import { namingUrl } from './sources/fetched-url.js';
import type { RepositorySource } from './sources/source.js';

/** The version of a target that a mirror sent. */
export interface SeenVersion {
  /** URL of the mirror. */
  readonly location: string;
  readonly etag: string;
}

export interface TransferStart {
  /** Number of bytes that the receiver has already. */
  readonly offset: number;
  /** Version of these bytes; undefined if the mirror named none. */
  readonly seen: SeenVersion | undefined;
  /** Called before the first byte. The bytes begin at `offset`, or at 0; the receiver must then discard those before. */
  onBegin(begun: { readonly offset: number; readonly seen?: SeenVersion }): void;
}

/** Starts a transfer. It yields exactly the bytes from its begin to the signed length, or throws. */
export type OpenTransfer = (start: TransferStart, signal: AbortSignal) => AsyncIterable<Buffer>;

/**
 * Receives a target from one mirror.
 * @param others whether another mirror is tried if this one fails
 */
export type Receive = (open: OpenTransfer, signal: AbortSignal, others: 'yes' | 'no') => Promise<void>;

export interface DownloadOptions {
  readonly mirrors: Pick<Mirrors, 'attempt'>;
  readonly target: SignedTarget;
  readonly transport: TransportLimits;
  readonly signal?: AbortSignal | undefined;
}

/** The average throughput that a mirror must reach after a minute while another mirror is left. */
const patientBytesPerSecond = 64_000;
const graceMs = 60_000;
/** A transfer may be interrupted and resumed: all transfers from one mirror together get this many times the deadline of one. */
const maxTransfers = 4;

/**
 * @returns the failures of the mirrors before the one that succeeded
 * @throws WritError as Mirrors.attempt
 */
export async function downloadFromMirrors(
  { mirrors, target, transport, signal }: DownloadOptions,
  receive: Receive,
): Promise<readonly MirrorFailure[]> {
  const { length } = target;
  const { failures } = await mirrors.attempt(
    (source, until, others) =>
      namingUrl(`${source.location}${target.archivePath}`, () =>
        receive(transferFrom(source, target), until, others),
      ),
    {
      timeoutMs: transport.archiveTimeoutMs * maxTransfers,
      // Slow retrieval attack: at the last mirror waiting is the only option.
      patienceMs: graceMs + (length / patientBytesPerSecond) * 1000,
      signal,
    },
  );
  return failures;
}

function transferFrom(source: RepositorySource, { archivePath, length }: SignedTarget): OpenTransfer {
  const { location } = source;
  return ({ offset, seen, onBegin }, signal) =>
    source.stream(archivePath, {
      // Another mirror may have another ETag for the same version, and would then send the whole file.
      ...{ length, offset, etag: seen?.location === location ? seen.etag : undefined, signal },
      onBegin: ({ offset: from, etag }) =>
        onBegin(etag === undefined ? { offset: from } : { offset: from, seen: { location, etag } }),
    });
}
