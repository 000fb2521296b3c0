// Applies one refresh of a repository to its view: new entries replace old ones, which stay as past entries for a difference, and a
// failed refresh removes nothing. Pure.
import {
  isSameChannel,
  type RepositoryView,
  type SignedEntry,
  type SignedRole,
} from '../../core/fleet/signed-releases.js';
import type { OfferedEntry, OfferedReleases } from './read-offered-releases.js';

export interface RepositoryReading {
  /** Begin of the refresh, in epoch milliseconds. */
  readonly atMs: number;
  readonly roles: readonly SignedRole[];
  /** SHA-256 of each root that this server has trusted, the newest last. */
  readonly roots: readonly string[];
  /** Undefined when the refresh failed. */
  readonly offered?: OfferedReleases;
  /** Error code of the refresh or of an unread channel; undefined when both succeeded. */
  readonly code?: string;
}

const maxPastPerChannel = 10;
const maxRoots = 256;

/** @returns the view of a repository before its first refresh: no entry, and the times 0 */
export function emptyView(url: string): RepositoryView {
  return { url, checkedAtMs: 0, triedAtMs: 0, roles: [], roots: [], entries: [], past: [] };
}

/**
 * @returns the view after a refresh. After a failed one, entries and `checkedAtMs` stay, and `failing` has the code
 * and the time of the first failure in a row.
 */
export function applyReading(before: RepositoryView, reading: RepositoryReading): RepositoryView {
  const { atMs, offered, code, roles } = reading;
  const read = offered === undefined ? before : applyOfferedReleases(before, offered, atMs);
  const sinceMs = before.failing?.sinceMs ?? atMs;
  return {
    url: before.url,
    checkedAtMs: offered === undefined ? before.checkedAtMs : atMs,
    triedAtMs: atMs,
    // The first refresh after a start may fail before it trusts a role; the known roles stay valid.
    roles: roles.length === 0 ? before.roles : roles,
    roots: [
      ...new Set([...before.roots.filter((one) => !reading.roots.includes(one)), ...reading.roots]),
    ].slice(-maxRoots),
    entries: read.entries,
    past: read.past,
    ...(code === undefined ? {} : { failing: { code, sinceMs } }),
  };
}

function applyOfferedReleases(
  { entries: old, past }: RepositoryView,
  { entries, unreadChannels }: OfferedReleases,
  atMs: number,
): Pick<RepositoryView, 'entries' | 'past'> {
  const retained = old.filter((one) => unreadChannels.some((name) => isSameChannel(one, name)));
  const fresh = entries.map((one): SignedEntry => {
    const known = old.find((other) => isSameChannel(one, other) && hasSameRelease(one, other));
    return { ...one, seenAtMs: known?.seenAtMs ?? atMs };
  });
  const current = [...fresh, ...retained];
  const replaced = old.filter(
    (one) => !current.some((other) => isSameChannel(one, other) && hasSameRelease(one, other)),
  );
  return { entries: current, past: retainPastEntries([...replaced, ...past], current) };
}

/** @returns the newest past entries of each channel, without the current one; linear, because a refresh comes every few seconds */
function retainPastEntries(past: readonly SignedEntry[], current: readonly SignedEntry[]): SignedEntry[] {
  const channelOf = ({ bundle, channel }: SignedEntry): string => `${bundle}/${channel}`;
  const currentByChannel = new Map(current.map((one) => [channelOf(one), one]));
  const retainedSerials = new Map<string, Set<number>>();
  return past.filter((one) => {
    const serials = retainedSerials.get(channelOf(one)) ?? new Set();
    const present = currentByChannel.get(channelOf(one));
    const isCurrent = present !== undefined && hasSameRelease(one, present);
    if (isCurrent || serials.has(one.serial) || serials.size >= maxPastPerChannel) return false;
    retainedSerials.set(channelOf(one), serials.add(one.serial));
    return true;
  });
}

/** Compares the release that hosts would activate; a withdrawal may change other members only. */
function hasSameRelease(one: OfferedEntry, other: OfferedEntry): boolean {
  return one.serial === other.serial && one.manifest === other.manifest && one.archive === other.archive;
}
