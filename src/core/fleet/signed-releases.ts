// The signed metadata of repositories, as the fleet server verified it, and the standing of the releases that hosts run or a wait
// names. Pure; reads no keys and no hosts.

/** The entry of one bundle and channel in signed metadata. */
export interface SignedEntry {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** SHA-256, hex, as `archive`. */
  readonly manifest: string;
  readonly manifestBytes: number;
  readonly archive: string;
  readonly archiveBytes: number;
  readonly revision: string;
  readonly createdAtMs: number;
  /** Name of the role that signed the entry. */
  readonly role: string;
  readonly requires: readonly string[];
  /** Serial of the release that this one corrects. */
  readonly fixes?: number;
  /** Paths of the files with a stamp. */
  readonly stamps: readonly string[];
  /** Withdrawn serials. */
  readonly withdrawn: readonly number[];
  /** When the server first read the entry. */
  readonly seenAtMs: number;
}

export interface SignedRole {
  readonly role: string;
  readonly version: number;
  readonly expiresAtMs: number;
}

export interface RepositoryView {
  readonly url: string;
  /** Begin of the last successful reading; 0 if there was none. */
  readonly checkedAtMs: number;
  readonly triedAtMs: number;
  readonly failing?: { readonly code: string; readonly sinceMs: number };
  readonly roles: readonly SignedRole[];
  /** SHA-256 (hex) of each trusted root, the newest last. */
  readonly roots: readonly string[];
  readonly entries: readonly SignedEntry[];
  /** Former entries of the same channels, the newest first. */
  readonly past: readonly SignedEntry[];
}

export const standings = ['current', 'behind', 'withdrawn', 'unknown'] as const;
/** The standing of an active release, compared with the signed metadata of its channel. */
export type Standing = (typeof standings)[number];

export interface RunningRelease {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifest: string;
  /** Digests of the roots that the hosts with this release trust. */
  readonly roots: readonly string[];
}

/** The comparison of an active release with the head of its channel. */
export interface HeadVerdict {
  readonly standing: Standing;
  /** Serial of the release that should be in use. */
  readonly serial?: number;
}

/**
 * Compares a release with the entry of its own repository. It is `unknown` if the repository is not known, because serials repeat
 * across repositories.
 */
export function standingOf(views: readonly RepositoryView[], release: RunningRelease): HeadVerdict {
  const { serial, manifest } = release;
  const same = views.flatMap((view) =>
    entriesOf(view, release).filter((one) => one.serial === serial && one.manifest === manifest),
  );
  if (same.length > 0) return { standing: 'current', serial };
  const [entry] = views.filter((view) => isOf(view, release)).flatMap((view) => entriesOf(view, release));
  if (entry === undefined) return { standing: 'unknown' };
  // This reading does not know the same serial with another manifest, or a later serial.
  const standing = serial === entry.serial ? 'unknown' : standingAt(entry, serial);
  return { standing, serial: entry.serial };
}

/**
 * @returns whether the release is of this repository: its hosts trust roots of the repository, or a former entry lists the release
 */
function isOf({ roots, past }: RepositoryView, release: RunningRelease): boolean {
  const { serial, manifest } = release;
  const isThis = (one: SignedEntry): boolean =>
    isSameChannel(one, release) && one.serial === serial && one.manifest === manifest;
  const trusts = release.roots.length > 0 && release.roots.every((root) => roots.includes(root));
  return trusts || past.some(isThis);
}

interface Channel {
  readonly bundle: string;
  readonly channel: string;
}

function entriesOf({ entries }: RepositoryView, { bundle, channel }: Channel): SignedEntry[] {
  return entries.filter((one) => isSameChannel(one, { bundle, channel }));
}

/** @returns whether both name the same channel of the same bundle */
export function isSameChannel(one: Channel, other: Channel): boolean {
  return one.bundle === other.bundle && one.channel === other.channel;
}

/** The releases that repositories signed with one serial of a channel. */
export interface SignedSerial {
  /** SHA-256 (hex) of the manifest of each release with this serial, current or former. */
  readonly manifests: readonly string[];
  /** Roots of the repositories that list the channel without this serial, in a reading that began after the request. */
  readonly rootsWithout: readonly string[];
}

/**
 * @param question the channel and the serial; `sinceMs` is when the wait for it began, in epoch milliseconds
 * @returns the manifests with this serial and the repositories without it; two empty lists where no repository lists
 * the channel
 */
export function signedSerial(
  views: readonly RepositoryView[],
  question: Channel & { readonly serial: number; readonly sinceMs: number },
): SignedSerial {
  const parts = views.map((view) => {
    const entries = entriesOf(view, question);
    const past = view.past.filter((one) => isSameChannel(one, question));
    const manifests = [...entries, ...past]
      .filter(({ serial }) => serial === question.serial)
      .map(({ manifest }) => manifest);
    const isWithout = entries.some((entry) => waitOn(entry, view, question, view.checkedAtMs) === 'absent');
    return { manifests, roots: isWithout ? view.roots : [] };
  });
  return {
    manifests: [...new Set(parts.flatMap(({ manifests }) => manifests))],
    rootsWithout: parts.flatMap(({ roots }) => roots),
  };
}

export interface SignedWait {
  /** `unread`: the serial is above the signed one, and the last reading is older than the request. */
  readonly is: 'current' | 'withdrawn' | 'superseded' | 'absent' | 'unread';
  /** Serial of the channel's head. */
  readonly serial: number;
  /** Begin of the oldest reading with this result. */
  readonly readAtMs: number;
}

/** A reading is current for this time. */
const presentMs = 120_000;

/** @returns undefined if no signed metadata lists the channel, no reading is current, or repositories disagree */
export function signedWait(
  views: readonly RepositoryView[],
  question: Channel & { readonly serial: number; readonly sinceMs: number },
  nowMs: number,
): SignedWait | undefined {
  const verdicts = views.flatMap((view) =>
    entriesOf(view, question).map((entry) => ({
      entry,
      is: waitOn(entry, view, question, nowMs),
      readAtMs: view.checkedAtMs,
    })),
  );
  const [first] = verdicts;
  if (first?.is === undefined || verdicts.some(({ is }) => is !== first.is)) return undefined;
  const readAtMs = Math.min(...verdicts.map((one) => one.readAtMs));
  return { is: first.is, serial: first.entry.serial, readAtMs };
}

function waitOn(
  { serial, withdrawn }: SignedEntry,
  { checkedAtMs }: RepositoryView,
  question: { readonly serial: number; readonly sinceMs: number },
  nowMs: number,
): SignedWait['is'] | undefined {
  // A withdrawal is final, so that the age of the reading does not matter.
  if (withdrawn.includes(question.serial)) return 'withdrawn';
  if (question.serial < serial) return 'superseded';
  if (question.serial === serial) return nowMs - checkedAtMs <= presentMs ? 'current' : undefined;
  // The serial may be newer than the reading. Only a reading that began after the request shows its absence.
  return checkedAtMs > question.sinceMs ? 'absent' : 'unread';
}

export interface EntryChange {
  readonly member: string;
  readonly before: string;
  readonly after: string;
}

/** @returns the members in which the signed entries of two releases differ, as text */
export function diffEntries(before: SignedEntry, after: SignedEntry): EntryChange[] {
  const [old, now] = [textsOf(before), textsOf(after)];
  return Object.keys(now).flatMap((member) => {
    const change = { member, before: old[member] ?? '', after: now[member] ?? '' };
    return change.before === change.after ? [] : [change];
  });
}

const maxListed = 100;

function textsOf(entry: SignedEntry): Record<string, string> {
  const list = (all: readonly (string | number)[]): string =>
    all.length <= maxListed
      ? all.join(', ')
      : `${all.slice(-maxListed).join(', ')}, and ${all.length - maxListed} before`;
  return {
    serial: String(entry.serial),
    revision: entry.revision,
    created: new Date(entry.createdAtMs).toISOString(),
    'signed by': entry.role,
    manifest: `sha256:${entry.manifest}`,
    'manifest bytes': String(entry.manifestBytes),
    archive: `sha256:${entry.archive}`,
    'archive bytes': String(entry.archiveBytes),
    requires: list(entry.requires),
    fixes: entry.fixes === undefined ? '' : String(entry.fixes),
    stamps: list(entry.stamps),
    withdrawn: list(entry.withdrawn),
  };
}

/** The signed metadata of one repository about a release. */
export interface SignedRelease {
  readonly url: string;
  readonly standing: Standing;
  /** Serial of the channel's head. */
  readonly current: number;
  /** The entry of the release; undefined if the server has not read it. */
  readonly entry?: SignedEntry;
  /** Serial of the entry that it is compared with. */
  readonly against?: number;
  /** Serial of the release with the values `before` in `changes`. */
  readonly from?: number;
  readonly changes?: readonly EntryChange[];
}

/**
 * @param question `against`: serial to compare with; by default the release that it replaced or, for an older release, the head
 * @returns one element per repository that has this channel, in the order of `views`; empty if none has it. `entry` is absent
 *   for a serial that the server has not read. `against`, `from` and `changes` are absent without an entry to compare with.
 *   `changes` is from `from` to the other entry, empty if equal. Throws nothing.
 */
export function signedReleases(
  views: readonly RepositoryView[],
  question: Channel & { readonly serial: number; readonly against?: number },
): SignedRelease[] {
  return views.flatMap((view) => {
    const [current] = entriesOf(view, question);
    if (current === undefined) return [];
    const known = [current, ...view.past.filter((one) => isSameChannel(one, current))];
    const standing = standingAt(current, question.serial);
    return [{ url: view.url, standing, current: current.serial, ...compared(known, question) }];
  });
}

/** @param known entries of a channel, the newest first */
function compared(
  known: readonly SignedEntry[],
  { serial, against }: { readonly serial: number; readonly against?: number },
): Pick<SignedRelease, 'entry' | 'against' | 'from' | 'changes'> {
  const [current, replaced] = known;
  const entry = known.find((one) => one.serial === serial);
  if (entry === undefined) return {};
  const usual = entry === current ? replaced : current;
  const other = against === undefined ? usual : known.find((one) => one.serial === against);
  if (other === undefined) return { entry };
  const from = against === undefined && entry !== current ? entry : other;
  const changes = diffEntries(from, from === other ? entry : other);
  return { entry, against: other.serial, from: from.serial, changes };
}

function standingAt({ serial: current, withdrawn }: SignedEntry, serial: number): Standing {
  if (serial === current) return 'current';
  if (withdrawn.includes(serial)) return 'withdrawn';
  return serial < current ? 'behind' : 'unknown';
}
