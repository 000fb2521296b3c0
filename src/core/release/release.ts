// The signed description of a release: `custom.writ` of a TUF target entry. Has its type and parser; age-rules.ts judges a release.
import { WritError } from '../errors.js';
import { given } from '../given.js';
import { type Digest, digestFromHex, digestHex, isName } from '../names.js';
import { type DeltaInfo, encodeDeltas, parseDeltas } from './deltas.js';
import { parseRequires } from './requires.js';
import { isSerial } from './serial.js';
import { encodeStamps, parseStamps, type Stamped } from './stamps.js';

/** Number of accepted serials that a host stores for each bundle and channel; older ones are deleted. */
export const maxAcceptedSerials = 1000;

export interface ReleaseInfo {
  readonly bundle: string;
  readonly channel: string;
  /** Increases with each release of the bundle; the age rules enforce it. */
  readonly serial: number;
  /** Free text for people, for example a git commit; at most 200 characters. */
  readonly revision: string;
  /** Epoch milliseconds. */
  readonly createdAtMs: number;
  readonly manifest: { readonly digest: Digest; readonly length: number };
  /** The tree before its stamps were filled in; undefined without stamps. */
  readonly stamped?: Stamped;
  /** Deltas from older releases; undefined if there are none. */
  readonly deltas?: readonly DeltaInfo[];
  /** Features that a host must know to activate the release (requires.ts); undefined if there are none. */
  readonly requires?: readonly string[];
  /** Serial of the older release of this bundle that it corrects; undefined if it corrects none. */
  readonly fixes?: number;
  /** Withdrawn serials, ascending. Each release repeats those of earlier releases. */
  readonly withdrawn: readonly number[];
  /** The withdrawal that made this release the head, for people; the next release does not repeat it. */
  readonly withdrawal?: Withdrawal;
}

export interface Withdrawal {
  readonly serials: readonly number[];
  /** Epoch milliseconds. */
  readonly atMs: number;
  /** Free text for people, at most 200 characters. */
  readonly reason: string;
}

const maxWithdrawn = 10_000;

/** @returns the `writ` object of the `custom` of a target, as the metadata contains it */
export function encodeReleaseInfo(info: ReleaseInfo): Record<string, unknown> {
  const isoTime = (atMs: number): string => new Date(atMs).toISOString();
  const { withdrawal: note } = info;
  return {
    bundle: info.bundle,
    channel: info.channel,
    serial: info.serial,
    revision: info.revision,
    createdAt: isoTime(info.createdAtMs),
    manifest: { sha256: digestHex(info.manifest.digest), length: info.manifest.length },
    withdrawn: [...info.withdrawn],
    ...(info.stamped === undefined ? {} : encodeStamps(info.stamped)),
    ...given({
      deltas: info.deltas && encodeDeltas(info.deltas),
      requires: info.requires && [...info.requires],
      fixes: info.fixes,
      withdrawal: note && { serials: [...note.serials], at: isoTime(note.atMs), reason: note.reason },
    }),
  };
}

/**
 * Parses the `custom` object of a target. Unknown members are ignored, so that later publishers can add some.
 * @param where the name of the target, for the error
 * @throws WritError TARGET_MALFORMED with the wrong member
 */
export function parseReleaseInfo(custom: unknown, where: string): ReleaseInfo {
  const writ = member(custom, 'writ');
  const fail = (name: string): never => {
    const facts = { target: where, member: name };
    throw new WritError('TARGET_MALFORMED', `${where}: custom.writ.${name} is missing or wrong`, { facts });
  };
  const bundle = member(writ, 'bundle');
  const channel = member(writ, 'channel');
  const serial = member(writ, 'serial');
  const revision = member(writ, 'revision');
  const createdAtMs = parseIsoTime(member(writ, 'createdAt'));
  const manifest = member(writ, 'manifest');
  const digest = digestFromHex(member(manifest, 'sha256'));
  const length = member(manifest, 'length');
  const withdrawn = member(writ, 'withdrawn');
  if (!isName(bundle)) return fail('bundle');
  if (!isName(channel)) return fail('channel');
  if (!isSerial(serial)) return fail('serial');
  if (typeof revision !== 'string' || revision.length > 200) return fail('revision');
  if (createdAtMs === undefined) return fail('createdAt');
  if (digest === undefined || !isSerial(length)) return fail('manifest');
  if (!isSerials(withdrawn)) return fail('withdrawn');
  const plain = { bundle, channel, serial, revision, createdAtMs, manifest: { digest, length }, withdrawn };
  const [source, stamps] = [member(writ, 'source'), member(writ, 'stamps')];
  const stamped = parseStamps(source, stamps);
  if (stamped === undefined && (source !== undefined || stamps !== undefined)) return fail('stamps');
  const ifThere = <T>(name: string, parse: (value: unknown) => T | undefined): T | undefined => {
    const value = member(writ, name);
    return value === undefined ? undefined : (parse(value) ?? fail(name));
  };
  const deltas = ifThere('deltas', (rows) => parseDeltas(rows, digest));
  const requires = ifThere('requires', parseRequires);
  const fixes = ifThere('fixes', (value) => (isSerial(value) && value < serial ? value : undefined));
  const withdrawal = ifThere('withdrawal', parseWithdrawal);
  return { ...plain, ...given({ stamped, deltas, requires, fixes, withdrawal }) };
}

function parseWithdrawal(note: unknown): Withdrawal | undefined {
  const serials = member(note, 'serials');
  const atMs = parseIsoTime(member(note, 'at'));
  const reason = member(note, 'reason');
  const whole = isSerials(serials) && atMs !== undefined && typeof reason === 'string';
  return whole && reason.length <= 200 ? { serials, atMs, reason } : undefined;
}

function isSerials(value: unknown): value is number[] {
  return Array.isArray(value) && value.length <= maxWithdrawn && value.every(isSerial);
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

/** @returns epoch milliseconds of a strict ISO 8601 time in UTC, with or without milliseconds; undefined for any other value */
export function parseIsoTime(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined;
  const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,3})?Z$/.exec(value);
  const time = match ? Date.parse(value) : Number.NaN;
  // Date.parse accepts February 30 and 24:00:00 as other days: a valid time produces the same text again.
  const same = Number.isFinite(time) && new Date(time).toISOString().startsWith(match?.[1] ?? ' ');
  return same ? time : undefined;
}

/** The members that distinguish a release from every other. */
export type NewRelease = Pick<ReleaseInfo, 'bundle' | 'serial' | 'manifest'>;

/** The members that identify a release. */
export interface NamedRelease extends Pick<ReleaseInfo, 'bundle' | 'serial'> {
  readonly manifest: Pick<ReleaseInfo['manifest'], 'digest'>;
}
