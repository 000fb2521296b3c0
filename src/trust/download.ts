// A target from one mirror after the other, until its receiver is content. Owns how long a mirror may take; where
// the bytes go, and whether they are the signed ones, is the receiver's to say.
import type { TransportLimits } from '../core/limits.js';
import type { MirrorFailure } from './mirrors/mirror-failures.js';
import type { Mirrors } from './mirrors/mirrors.js';
import type { SignedTarget } from './signed-target.js';
import { namingUrl } from './sources/fetched-url.js';
import type { RepositorySource } from './sources/source.js';

/** Which version of a target a mirror said to have. */
export interface SeenVersion {
  /** The mirror's. */
  readonly location: string;
  readonly etag: string;
}

export interface TransferStart {
  /** Bytes that are here already. */
  readonly offset: number;
  /** What the mirror of the last of them said. */
  readonly seen: SeenVersion | undefined;
  /** Called before the first byte: bytes come from `offset` on, or from the start, and then those before are of no use. */
  onBegin(begun: { readonly offset: number; readonly seen?: SeenVersion }): void;
}

/** Begins a transfer: yields exactly the bytes from where it has begun to the signed length, or throws. */
export type OpenTransfer = (start: TransferStart, signal: AbortSignal) => AsyncIterable<Buffer>;

/** Takes a target from one mirror. @param others whether another mirror is asked if this one is not good enough */
export type Receive = (open: OpenTransfer, signal: AbortSignal, others: 'yes' | 'no') => Promise<void>;

export interface DownloadOptions {
  readonly mirrors: Pick<Mirrors, 'attempt'>;
  readonly target: SignedTarget;
  readonly transport: TransportLimits;
  readonly signal?: AbortSignal | undefined;
}

/** While another mirror is left, one has to bring this much on average, after a minute. */
const patientBytesPerSecond = 64_000;
const graceMs = 60_000;
/** One transfer may be cut and go on: all transfers from one mirror together get so many times the deadline of one. */
const maxTransfers = 4;

/**
 * @returns the mirrors that failed before one did not
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
      // Slow retrieval: at the last mirror there is nothing better to do than to wait.
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
      // Another mirror names the same version otherwise: it would send the whole.
      ...{ length, offset, etag: seen?.location === location ? seen.etag : undefined, signal },
      onBegin: ({ offset: from, etag }) =>
        onBegin(etag === undefined ? { offset: from } : { offset: from, seen: { location, etag } }),
    });
}
