// A target from one mirror after the other, until its receiver is content. Owns how long a mirror may take; where
// the bytes go, and whether they are the signed ones, is the receiver's to say.
import type { TransportLimits } from '../core/limits.js';
import type { MirrorFailure } from './mirrors/mirror-failures.js';
import type { Mirrors } from './mirrors/mirrors.js';
import type { SignedTarget } from './signed-target.js';

/** Begins a transfer at `offset`: yields exactly the bytes from there to the signed length, or throws. */
export type OpenTransfer = (offset: number, signal: AbortSignal) => AsyncIterable<Buffer>;

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
  receive: (open: OpenTransfer, signal: AbortSignal) => Promise<void>,
): Promise<readonly MirrorFailure[]> {
  const { archivePath, length } = target;
  const { failures } = await mirrors.attempt(
    (source, until) =>
      receive((offset, transfer) => source.stream(archivePath, { length, offset, signal: transfer }), until),
    {
      timeoutMs: transport.archiveTimeoutMs * maxTransfers,
      // Slow retrieval: at the last mirror there is nothing better to do than to wait.
      patienceMs: graceMs + (length / patientBytesPerSecond) * 1000,
      signal,
    },
  );
  return failures;
}
