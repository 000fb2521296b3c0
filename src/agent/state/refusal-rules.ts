// Decides which refused releases a host remembers, and when it tries each again (docs/ARCHITECTURE.md, Invariants). Pure.
// Only verdicts on authentic bytes are remembered, never a failure of the network or the host.
import { computeBackoffMs } from '../../core/backoff.js';
import type { ErrorCode } from '../../core/error-codes.js';
import type { Digest } from '../../core/names.js';

export interface RefusalEntry {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifestDigest: Digest;
  readonly code: ErrorCode;
  readonly message: string;
  readonly atMs: number;
  /** Epoch milliseconds; 0: at once. */
  readonly retryAtMs: number;
  /** How often the release was refused: the delay doubles each time. */
  readonly tries: number;
  /** Names of the bundles that were refused together with this one: any of them may be the cause. */
  readonly refusedWith: readonly string[];
}

const maxRetryMs = 86_400_000;
const maxRefusals = 1000;
/** All refusals as JSON: every start reads the file, and every refusal rewrites it. */
const maxTotalBytes = 1_000_000;

/** @returns milliseconds to wait after the n-th refusal: `firstMs`, doubled each time up to 24 h */
export function retryDelayMs(tries: number, firstMs: number): number {
  return computeBackoffMs(tries, { firstMs, maxMs: Math.max(maxRetryMs, firstMs) });
}

const firstFaultMs = 60_000;
const shortFaultTries = 4;

/** @returns as retryDelayMs, for a refusal that names a fault of the host: 1, 2, 4 and 8 minutes at first */
export function hostFaultDelayMs(tries: number, firstMs: number): number {
  const usualMs = retryDelayMs(Math.max(tries - shortFaultTries, 1), firstMs);
  return tries > shortFaultTries
    ? usualMs
    : computeBackoffMs(tries, { firstMs: firstFaultMs, maxMs: usualMs });
}

export interface RefusalBackoff {
  /** Delay after the first refusal. */
  readonly firstMs: number;
  /** The refusal names a fault of this host, which may end soon. */
  readonly isHostFault: boolean;
}

/** @returns the refusals with this one added, or counted again if known; the oldest ones are dropped at the limits */
export function withRefusal(
  refusals: readonly RefusalEntry[],
  refusal: Omit<RefusalEntry, 'retryAtMs' | 'tries'>,
  { firstMs, isHostFault }: RefusalBackoff,
): readonly RefusalEntry[] {
  const known = findRefusal(refusals, refusal.bundle, refusal.manifestDigest);
  const tries = (known?.tries ?? 0) + 1;
  const delayMs = (isHostFault ? hostFaultDelayMs : retryDelayMs)(tries, firstMs);
  const entry = { ...refusal, tries, retryAtMs: refusal.atMs + delayMs };
  return newestWithinLimits([...refusals.filter((one) => one !== known), entry]);
}

/** Bounds the bytes too, because a message or a list of bundles can be long. */
function newestWithinLimits(refusals: readonly RefusalEntry[]): readonly RefusalEntry[] {
  let bytes = 0;
  const tooOld = refusals.findLastIndex((one) => {
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1;
    return bytes > maxTotalBytes;
  });
  return refusals.slice(Math.max(tooOld + 1, refusals.length - maxRefusals));
}

/** @returns the refusal of exactly these bytes of the bundle; undefined where they are not refused */
export function findRefusal(
  refusals: readonly RefusalEntry[],
  bundle: string,
  manifestDigest: Digest,
): RefusalEntry | undefined {
  return refusals.find((one) => one.bundle === bundle && one.manifestDigest === manifestDigest);
}

/**
 * Removes the refusal of a release that has become active.
 * @param bundle needed, because two bundles may have the same files: a digest alone does not identify a release
 */
export function withoutRefusal(
  refusals: readonly RefusalEntry[],
  bundle: string,
  manifestDigest: Digest,
): readonly RefusalEntry[] {
  return refusals.filter((one) => one.bundle !== bundle || one.manifestDigest !== manifestDigest);
}

/** The offered and the active release of a bundle. */
export interface BundleOffer {
  /** Manifest digest of the head of the configured channel; `unknown` without verified metadata. */
  readonly offered: Digest | 'none' | 'unknown';
  /** Undefined if no release of the bundle is active. */
  readonly activeSerial?: number | undefined;
}

/**
 * A refusal is current while its release could still be tried. A channel has one head, so a refusal is outdated once the head
 * is another release or none. Otherwise the status would warn for ever of a release that was corrected.
 * @returns whether the refusal is current; if the head is unknown, whether no newer serial is active
 */
export function isCurrentRefusal(
  { serial, manifestDigest }: RefusalEntry,
  { offered, activeSerial }: BundleOffer,
): boolean {
  if (offered === 'unknown') return activeSerial === undefined || activeSerial <= serial;
  return offered === manifestDigest;
}

/** The refusals that an operator selects; an absent member selects all. */
export interface RefusalChoice {
  readonly bundle?: string;
  readonly serial?: number;
}

/**
 * Compares a remembered refusal with the choice of an operator. Throws nothing.
 * @param choice a member that is undefined matches each refusal
 * @returns true if every given member is equal: `{ bundle: 'dns' }` matches all serials of dns, and `{}` matches each refusal
 */
export function matchesChoice(
  { bundle, serial }: Pick<RefusalEntry, 'bundle' | 'serial'>,
  choice: RefusalChoice,
): boolean {
  return bundle === (choice.bundle ?? bundle) && serial === (choice.serial ?? serial);
}

/** @returns the refusals, all to be tried at once; their counts stay */
export function withImmediateRetry(refusals: readonly RefusalEntry[]): readonly RefusalEntry[] {
  return refusals.map((one) => (one.retryAtMs === 0 ? one : { ...one, retryAtMs: 0 }));
}
