// Names, digests, durations and sizes as the formats write them, each with its parser. Only these functions create the branded
// types, so that an unchecked string cannot be used in place of a checked one.

declare const brand: unique symbol;
type Branded<Base, Name> = Base & { readonly [brand]: Name };

/** `sha256:<64 lower-case hex digits>`. */
export type Digest = Branded<string, 'Digest'>;

/** Bundle, channel and group names (docs/configuration.md). */
export const namePattern = '^[a-z0-9][a-z0-9._-]{0,63}$';
const nameRegExp = new RegExp(namePattern);

/** @returns true for a name of a bundle, channel or group */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && nameRegExp.test(value);
}

/** @returns the caller of a request as text. A bare `root` could be the metadata role, and `writ` is the agent itself. */
export function describeCaller(by: string): string {
  return by === 'writ' ? by : `user ${by}`;
}

const hexDigest = /^[0-9a-f]{64}$/;

/**
 * @param hex 64 lower-case hex digits
 * @returns undefined for any other value
 */
export function digestFromHex(hex: unknown): Digest | undefined {
  return typeof hex === 'string' && hexDigest.test(hex) ? (`sha256:${hex}` as Digest) : undefined;
}

/** @returns the 64 hex digits alone, as in metadata */
export function digestHex(digest: Digest): string {
  return digest.slice('sha256:'.length);
}

/** @returns the first 12 hex digits, for people and names of directories; the full digest identifies */
export function digest12(digest: Digest): string {
  return digestHex(digest).slice(0, 12);
}

/** At most eight digits, because more days are not a safe integer of milliseconds. */
export const durationPattern = '^[0-9]{1,8}(ms|s|m|h|d)$';
const durationRegExp = new RegExp(durationPattern);
const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * @param text a duration, as `5m`
 * @returns milliseconds, or undefined for any other text
 */
export function parseDuration(text: string): number | undefined {
  const unit = unitMs[durationRegExp.exec(text)?.[1] ?? ''];
  return unit === undefined ? undefined : Number.parseInt(text, 10) * unit;
}

/** As parseDuration, for a text that a schema accepted; NaN for any other. */
export function durationMs(text: string): number {
  return parseDuration(text) ?? Number.NaN;
}

export const sizePattern = '^[0-9]{1,9}(B|kB|MB|GB)$';
const sizeRegExp = new RegExp(sizePattern);
const unitBytes: Readonly<Record<string, number>> = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

/**
 * @param text a size, as `256MB`
 * @returns bytes, or undefined for any other text
 */
export function parseSize(text: string): number | undefined {
  const unit = unitBytes[sizeRegExp.exec(text)?.[1] ?? ''];
  return unit === undefined ? undefined : Number.parseInt(text, 10) * unit;
}

/** As parseSize, for a text that a schema accepted; NaN for any other. */
export function sizeBytes(text: string): number {
  return parseSize(text) ?? Number.NaN;
}

/** At most seven digits: a factor of a hundred thousand. */
export const percentPattern = '^(0|[1-9][0-9]{0,6})%$';
const percentRegExp = new RegExp(percentPattern);

/**
 * @param text a percentage, as `50%`
 * @returns the whole number before the sign, or undefined for any other text
 */
export function parsePercent(text: string): number | undefined {
  return percentRegExp.test(text) ? Number.parseInt(text, 10) : undefined;
}

export const percentRangePattern = '^(0|[1-9][0-9]{0,6})%\\.\\.(0|[1-9][0-9]{0,6})%$';

/**
 * @param text two percentages, as `50%..200%`
 * @returns the numbers before their signs, or undefined for any other text
 */
export function parsePercentRange(text: string): { readonly min: number; readonly max: number } | undefined {
  const [min, max, ...others] = text.split('..').map(parsePercent);
  return min === undefined || max === undefined || others.length > 0 ? undefined : { min, max };
}

/** @returns the path of a bundle and channel in the signed targets */
export function targetPath(bundle: string, channel: string): string {
  return `${bundle}/${channel}.tar.br`;
}

/** As targetPath, for its deltas. The metadata lists no target with this name; each release lists its own deltas. */
export function deltaPath(bundle: string, channel: string): string {
  return `${bundle}/${channel}.delta`;
}
