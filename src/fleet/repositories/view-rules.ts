// What a reading makes of what was known of a repository: new entries take the place of old ones, which are kept for a difference,
// and a failure takes nothing away. Pure.
import {
  isSameChannel,
  type RepositoryView,
  type SignedEntry,
  type SignedRole,
} from '../../core/fleet/signed-releases.js';
import type { NewEntry, Offer } from './read-offer.js';

export interface Reading {
  /** When it began. */
  readonly atMs: number;
  readonly roles: readonly SignedRole[];
  /** Digests of roots that were trusted in it, the newest last. */
  readonly roots: readonly string[];
  /** Left out where the refresh failed. */
  readonly offer?: Offer;
  /** Code of what failed. */
  readonly code?: string;
}

const maxPastEach = 10;
const maxRoots = 256;

export function emptyView(url: string): RepositoryView {
  return { url, checkedAtMs: 0, triedAtMs: 0, roles: [], roots: [], entries: [], past: [] };
}

export function nextView(before: RepositoryView, reading: Reading): RepositoryView {
  const { atMs, offer, code, roles } = reading;
  const read = offer === undefined ? before : withOffer(before, offer, atMs);
  const sinceMs = before.failing?.sinceMs ?? atMs;
  return {
    url: before.url,
    checkedAtMs: offer === undefined ? before.checkedAtMs : atMs,
    triedAtMs: atMs,
    // The first reading of a day may fail before a role is trusted; what was known is no less true.
    roles: roles.length === 0 ? before.roles : roles,
    roots: [
      ...new Set([...before.roots.filter((one) => !reading.roots.includes(one)), ...reading.roots]),
    ].slice(-maxRoots),
    entries: read.entries,
    past: read.past,
    ...(code === undefined ? {} : { failing: { code, sinceMs } }),
  };
}

function withOffer(
  { entries: old, past }: RepositoryView,
  { entries, unread }: Offer,
  atMs: number,
): Pick<RepositoryView, 'entries' | 'past'> {
  const kept = old.filter((one) => unread.some((name) => isSameChannel(one, name)));
  const fresh = entries.map((one): SignedEntry => {
    const known = old.find((other) => isSameChannel(one, other) && isSameEntry(one, other));
    return { ...one, seenAtMs: known?.seenAtMs ?? atMs };
  });
  const now = [...fresh, ...kept];
  const gone = old.filter(
    (one) => !now.some((other) => isSameChannel(one, other) && isSameEntry(one, other)),
  );
  return { entries: now, past: keepSome([...gone, ...past], now) };
}

/** Of each channel the newest that differ, and none that is signed now. Once over all: a reading comes every few seconds. */
function keepSome(past: readonly SignedEntry[], now: readonly SignedEntry[]): SignedEntry[] {
  const nameOf = ({ bundle, channel }: SignedEntry): string => `${bundle}/${channel}`;
  const current = new Map(now.map((one) => [nameOf(one), one]));
  const kept = new Map<string, Set<number>>();
  return past.filter((one) => {
    const serials = kept.get(nameOf(one)) ?? new Set();
    const present = current.get(nameOf(one));
    const isCurrent = present !== undefined && isSameEntry(one, present);
    if (isCurrent || serials.has(one.serial) || serials.size >= maxPastEach) return false;
    kept.set(nameOf(one), serials.add(one.serial));
    return true;
  });
}

/** A withdrawal may leave the release where it is: what is compared is what hosts take. */
function isSameEntry(one: NewEntry, other: NewEntry): boolean {
  return one.serial === other.serial && one.manifest === other.manifest && one.archive === other.archive;
}
