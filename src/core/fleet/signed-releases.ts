// What repositories have signed, as a fleet server concluded it from metadata that it verified, and what that makes of a release
// that a host runs or somebody waits for. Pure; knows neither keys nor hosts.

/** The entry of one bundle and channel in signed metadata. */
export interface SignedEntry {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** SHA-256, hex; `archive` too. */
  readonly manifest: string;
  readonly manifestBytes: number;
  readonly archive: string;
  readonly archiveBytes: number;
  readonly revision: string;
  readonly createdAtMs: number;
  /** Whose entry it is. */
  readonly role: string;
  readonly requires: readonly string[];
  /** Serial of the release that it corrects. */
  readonly fixes?: number;
  /** Files that have one. */
  readonly stamps: readonly string[];
  /** Serials taken back so far. */
  readonly withdrawn: readonly number[];
  /** When the server saw it first. */
  readonly seenAtMs: number;
}

export interface SignedRole {
  readonly role: string;
  readonly version: number;
  readonly expiresAtMs: number;
}

export interface RepositoryView {
  readonly url: string;
  /** Begin of the last reading that succeeded; 0: none did. */
  readonly checkedAtMs: number;
  readonly triedAtMs: number;
  readonly failing?: { readonly code: string; readonly sinceMs: number };
  readonly roles: readonly SignedRole[];
  /** SHA-256 of each root that was trusted, hex, the newest last. */
  readonly roots: readonly string[];
  readonly entries: readonly SignedEntry[];
  /** What they were before, the newest first. */
  readonly past: readonly SignedEntry[];
}

export const standings = ['current', 'behind', 'withdrawn', 'unknown'] as const;
/** Of a release that is active somewhere, to what was signed. */
export type Standing = (typeof standings)[number];

export interface RunningRelease {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifest: string;
  /** Digests of the roots that its hosts trust. */
  readonly roots: readonly string[];
}

export interface Judged {
  readonly standing: Standing;
  /** That should be in use. */
  readonly serial?: number;
}

/** Serials repeat across repositories: a release is judged by its own, or not at all. */
export function standingOf(views: readonly RepositoryView[], release: RunningRelease): Judged {
  const { serial, manifest } = release;
  const same = views.flatMap((view) =>
    entriesOf(view, release).filter((one) => one.serial === serial && one.manifest === manifest),
  );
  if (same.length > 0) return { standing: 'current', serial };
  const [entry] = views.filter((view) => isOf(view, release)).flatMap((view) => entriesOf(view, release));
  if (entry === undefined) return { standing: 'unknown' };
  // The same serial with another manifest, or a later one: not what this reading can speak of.
  const standing = serial === entry.serial ? 'unknown' : standingAt(entry, serial);
  return { standing, serial: entry.serial };
}

/** By the roots that its hosts trust, or as an entry that was signed there before. */
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

export function isSameChannel(one: Channel, other: Channel): boolean {
  return one.bundle === other.bundle && one.channel === other.channel;
}

/** What repositories have signed as one serial of a channel. */
export interface SignedSerial {
  /** SHA-256 of each manifest, hex: of releases that are listed now or were before. */
  readonly manifests: readonly string[];
  /** Of repositories that list the channel and have no such serial, by a reading after the question was asked. */
  readonly rootsWithout: readonly string[];
}

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
  /** `unread`: a serial above the signed one, and the reading is older than the question. */
  readonly is: 'current' | 'withdrawn' | 'superseded' | 'absent' | 'unread';
  /** That is signed for the channel now. */
  readonly serial: number;
  /** When the oldest reading began that says so. */
  readonly readAtMs: number;
}

/** As long a reading speaks for the present. */
const presentMs = 120_000;

/** @returns undefined where signed metadata says nothing of this release, or repositories disagree */
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
  // True for ever, however old the reading is: withdrawals add up.
  if (withdrawn.includes(question.serial)) return 'withdrawn';
  if (question.serial < serial) return 'superseded';
  if (question.serial === serial) return nowMs - checkedAtMs <= presentMs ? 'current' : undefined;
  // Published a moment ago, perhaps: only a reading from after the question was asked knows.
  return checkedAtMs > question.sinceMs ? 'absent' : 'unread';
}

export interface EntryChange {
  readonly member: string;
  readonly before: string;
  readonly after: string;
}

/** @returns what the signed entries of two releases differ in, as text */
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

/** What one repository has signed of a release that somebody looks at. */
export interface SignedRelease {
  readonly url: string;
  readonly standing: Standing;
  /** That is signed for the channel now. */
  readonly current: number;
  /** As it was signed; left out where the server has not seen it. */
  readonly entry?: SignedEntry;
  /** Serial of the entry that it is compared with. */
  readonly against?: number;
  /** Serial of the one of the two that `before` is of. */
  readonly from?: number;
  readonly changes?: readonly EntryChange[];
}

/** @param question `against`: serial to compare with; left out: what it replaced, or, of an older release, the current one */
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
