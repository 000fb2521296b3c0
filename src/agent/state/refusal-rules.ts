// The memory of refused releases (docs/ARCHITECTURE.md, Invariants): what was refused, why, and when
// it is tried again. Pure. Only verdicts on authentic bytes come here, never a fault of the way or the host.
import { computeBackoffMs } from '../../core/backoff.js';
import type { ErrorCode } from '../../core/error-codes.js';
import type { Digest } from '../../core/names.js';

export interface Refusal {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifestDigest: Digest;
  readonly code: ErrorCode;
  readonly message: string;
  readonly atMs: number;
  readonly retryAtMs: number;
  /** How often it was refused: the wait doubles each time. */
  readonly tries: number;
  /** Refused together with these bundles' releases: one of them may be the culprit. */
  readonly refusedWith: readonly string[];
}

const maxRetryMs = 86_400_000;
const maxRefusals = 1000;
/** Of all together, as JSON: the file is read at every start, and written whole at every refusal. */
const maxTotalBytes = 1_000_000;

/** @returns milliseconds to wait after the n-th refusal: `firstMs`, doubling to 24 h. */
export function retryDelayMs(tries: number, firstMs: number): number {
  return computeBackoffMs(tries, { firstMs, maxMs: Math.max(maxRetryMs, firstMs) });
}

const firstFaultMs = 60_000;
const shortFaultTries = 4;

/** @returns as retryDelayMs, for a refusal that names a fault of the host: first 1, 2, 4 and 8 minutes */
export function faultDelayMs(tries: number, firstMs: number): number {
  const usualMs = retryDelayMs(Math.max(tries - shortFaultTries, 1), firstMs);
  return tries > shortFaultTries
    ? usualMs
    : computeBackoffMs(tries, { firstMs: firstFaultMs, maxMs: usualMs });
}

export interface RetryPace {
  /** Until a release is tried again that was refused once. */
  readonly firstMs: number;
  /** The refusal names a fault of this host, which may be over soon. */
  readonly isHostFault: boolean;
}

/** @returns the refusals with one more, or with the known one counted again; the oldest make room. */
export function remember(
  refusals: readonly Refusal[],
  refusal: Omit<Refusal, 'retryAtMs' | 'tries'>,
  { firstMs, isHostFault }: RetryPace,
): readonly Refusal[] {
  const known = findRefusal(refusals, refusal.bundle, refusal.manifestDigest);
  const tries = (known?.tries ?? 0) + 1;
  const delayMs = (isHostFault ? faultDelayMs : retryDelayMs)(tries, firstMs);
  const entry = { ...refusal, tries, retryAtMs: refusal.atMs + delayMs };
  return newest([...refusals.filter((one) => one !== known), entry]);
}

/** A message or a list of bundles can be long: a count alone bounds no bytes. */
function newest(refusals: readonly Refusal[]): readonly Refusal[] {
  let bytes = 0;
  const tooOld = refusals.findLastIndex((one) => {
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1;
    return bytes > maxTotalBytes;
  });
  return refusals.slice(Math.max(tooOld + 1, refusals.length - maxRefusals));
}

export function findRefusal(
  refusals: readonly Refusal[],
  bundle: string,
  manifestDigest: Digest,
): Refusal | undefined {
  return refusals.find((one) => one.bundle === bundle && one.manifestDigest === manifestDigest);
}

/**
 * Two bundles may hold the same files, so a digest alone names no release.
 * @returns the refusals without that of a release that has become active
 */
export function forget(
  refusals: readonly Refusal[],
  bundle: string,
  manifestDigest: Digest,
): readonly Refusal[] {
  return refusals.filter((one) => one.bundle !== bundle || one.manifestDigest !== manifestDigest);
}

/** What a host would take of a bundle now. */
export interface Offer {
  /** Of the release that the channel of the configuration points at; `unknown` where nobody can say. */
  readonly offered: Digest | 'none' | 'unknown';
  /** Left out where none of the bundle is active. */
  readonly activeSerial?: number | undefined;
}

/**
 * A refusal is of today while its release could still be tried. A channel points at one release alone, so that a newer one
 * there, or none, makes it history: it would otherwise warn for ever of what is repaired.
 */
export function isStanding({ serial, manifestDigest }: Refusal, { offered, activeSerial }: Offer): boolean {
  if (offered === 'unknown') return activeSerial === undefined || activeSerial <= serial;
  return offered === manifestDigest;
}

/** What of the memory a person means; left out: all of it. */
export interface RefusalChoice {
  readonly bundle?: string;
  readonly serial?: number;
}

export function isChosen(
  { bundle, serial }: Pick<Refusal, 'bundle' | 'serial'>,
  choice: RefusalChoice,
): boolean {
  return bundle === (choice.bundle ?? bundle) && serial === (choice.serial ?? serial);
}

/** @returns the refusals, all due at once: at boot and after a change of the configuration. */
export function retryNow(refusals: readonly Refusal[]): readonly Refusal[] {
  return refusals.map((one) => (one.retryAtMs === 0 ? one : { ...one, retryAtMs: 0 }));
}
