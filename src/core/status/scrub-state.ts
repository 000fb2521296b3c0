// The damage that a scan of the policy on disk can find, the state that the host records about it, and the time of the next
// scrub. The agent reads the files and repairs the damage. An edited file is reported as "changed on disk".
import { computeBackoffMs } from '../backoff.js';

export type DamagedPart = 'current' | 'generation' | 'tree' | 'manifest' | 'record' | 'archive';

export type DamageKind = 'missing' | 'extra' | 'changed' | 'type' | 'mode' | 'owner' | 'unreadable';

/** A file, link or directory that differs from what was signed or from what Writ wrote. */
export interface DamageFound {
  readonly generation: number;
  readonly part: DamagedPart;
  readonly kind: DamageKind;
  /** Left out for damage that does not belong to one bundle. */
  readonly bundle?: string;
  /** Directory of the tree, as `41-2c26b46b68ff.7`: the damage is current while the active generation uses it. */
  readonly tree?: string;
  /** Relative to the tree, the generation or the retained release; `.` for all of it. */
  readonly path: string;
}

/** The ledger's record of the last scan, and the counts of all scans. */
export interface ScrubState {
  /**
   * Epoch milliseconds: when the last scan ended. Before the first scan: a time at which no generation was active, so that
   * everything that is active was staged later.
   */
  readonly atMs: number;
  readonly outcome: 'intact' | 'damaged' | 'repaired';
  /** Damage that is not repaired, at most `maxRecordedDamage` entries. */
  readonly damage: readonly DamageFound[];
  /** Number of differences that the last scan found. */
  readonly found: number;
  /** Since the state directory was created. */
  readonly counts: ScrubCounts;
  /** Consecutive failed repairs. */
  readonly failures: number;
  /** The older generation that replaced a damaged one, as long as it is active; and the reason. */
  readonly behind?: { readonly generation: number; readonly text: string };
}

export interface ScrubCounts {
  readonly looks: number;
  readonly damaged: number;
  readonly repaired: number;
  readonly failed: number;
}

export const noScrubCounts: ScrubCounts = { looks: 0, damaged: 0, repaired: 0, failed: 0 };

export const maxRecordedDamage = 20;

/**
 * @returns true for the parts `current` (link with another target) and `generation` (other entries), which only a swap repairs
 */
export function isLinkDamage({ part }: DamageFound): boolean {
  return part === 'current' || part === 'generation';
}

/** @returns true for damage to a retained copy, from which a tree can be restored; the active tree can still be complete */
export function isRetainedCopyDamage({ part }: DamageFound): boolean {
  return part === 'manifest' || part === 'record' || part === 'archive';
}

const kindTexts: Readonly<Record<DamageKind, string>> = {
  missing: 'is missing',
  extra: 'does not belong there',
  changed: 'changed on disk',
  type: 'is no longer the same kind of file',
  mode: 'has a different mode',
  owner: 'has a different owner',
  unreadable: 'cannot be read',
};

/** @returns one line for operators, as `dns-edge: views/a.rpz changed on disk` */
export function formatDamage({ part, kind, bundle, path, generation }: DamageFound): string {
  const what = path === '.' ? '' : `${path} `;
  switch (part) {
    case 'current':
      return `the link \`current\` ${kindTexts[kind]}`;
    case 'generation':
      return `generation ${generation}: ${what === '' ? 'it' : `the entry ${path}`} ${kindTexts[kind]}`;
    case 'tree':
      return `${bundle}: ${what === '' ? 'its tree ' : what}${kindTexts[kind]}`;
    case 'manifest':
    case 'record':
    case 'archive':
      return `${bundle}: the kept ${part} ${kindTexts[kind]}`;
  }
}

/**
 * @param found number of all differences, of which `damage` lists the first
 * @returns the texts of the first three, and the number of the others
 */
export function formatDamageSummary(damage: readonly DamageFound[], found: number = damage.length): string {
  const shown = damage.slice(0, 3).map(formatDamage);
  const more = found - shown.length;
  return more > 0 ? `${shown.join('; ')}; ${more} more` : shown.join('; ');
}

/** The directories that the active generation uses. Only damage to these is current, because a move replaces the others. */
export interface ActiveDirectories {
  readonly generation: number | undefined;
  /** Directory of each active tree, by bundle. */
  readonly trees: ReadonlyMap<string, string>;
}

/** @returns the recorded damage that affects the active generation */
export function selectCurrentDamage(
  state: ScrubState | undefined,
  { generation, trees }: ActiveDirectories,
): DamageFound[] {
  return (state?.damage ?? []).filter((one) =>
    one.tree === undefined || one.bundle === undefined
      ? one.generation === generation
      : trees.get(one.bundle) === one.tree,
  );
}

/**
 * `digests`: every byte. `sizes`: names, types, sizes and modes. `places`: the links, and that each tree, manifest and archive
 * which they and the records name exists, without its contents.
 */
export type ScanDepth = 'digests' | 'sizes' | 'places';

export interface StartScanFacts {
  readonly ended: 'clean' | 'unclean';
  /** Whether a full scan of the active policy was completed since the host booted. */
  readonly isReadSinceBoot: boolean;
  /** Whether a later `writ pull` without an agent scrubs when it is needed. False for an agent: its start skips no scan. */
  readonly hasLaterScrub: boolean;
  /** Whether a loader or a worker must still load the active generation. */
  readonly isNotificationPending: boolean;
  readonly state: ScrubState | undefined;
  /** Interval of scrubs; undefined if periodic scrubs are switched off. */
  readonly everyMs: number | undefined;
  readonly nowMs: number;
}

/**
 * @returns the depth of the scan at a start. A start skips only what a later scrub finds in time: `places` requires a later
 *   pull, and a full scan without damage less than `everyMs` ago
 */
export function chooseStartScanDepth(facts: StartScanFacts): ScanDepth {
  const { ended, isReadSinceBoot, hasLaterScrub, isNotificationPending, state, everyMs, nowMs } = facts;
  if (ended === 'unclean' || !isReadSinceBoot) return 'digests';
  if (!hasLaterScrub || everyMs === undefined) return 'sizes';
  const ageMs = nowMs - (state?.atMs ?? 0);
  // After the clock was set back, the age of the last scan is unknown.
  const isDue = state === undefined || state.damage.length > 0 || ageMs < 0 || ageMs >= everyMs;
  if (isDue) return 'digests';
  return isNotificationPending ? 'sizes' : 'places';
}

const firstRetryMs = 60_000;
/** Delays an overdue scrub, because a start has more urgent work. */
const minDelayMs = 10_000;

/**
 * @returns milliseconds until the next scrub. After a failed repair: 1 minute, doubled for each failure, at most the interval.
 *   Never more than one interval, also after the clock was set back
 */
export function computeScrubDelayMs(
  state: ScrubState | undefined,
  { everyMs, nowMs }: { readonly everyMs: number; readonly nowMs: number },
): number {
  if (state === undefined) return everyMs;
  const { failures, atMs } = state;
  const delayMs =
    failures === 0 ? everyMs : computeBackoffMs(failures, { firstMs: firstRetryMs, maxMs: everyMs });
  return Math.min(Math.max(atMs + delayMs - nowMs, Math.min(everyMs, minDelayMs)), delayMs);
}

/**
 * @returns the state after a full scan of a host without an active generation. The scan is not counted. Its time is recorded,
 *   because everything that becomes active later is staged after it, and staging verifies every byte
 */
export function recordEmptyScan(state: ScrubState | undefined, atMs: number): ScrubState {
  const counts = state?.counts ?? noScrubCounts;
  return { atMs, outcome: 'intact', damage: [], found: 0, counts, failures: 0 };
}

/** The result of one scan and of its repair. */
export interface ScanResult {
  readonly atMs: number;
  /** The damage that the scan found. */
  readonly damage: readonly DamageFound[];
  /** `none`: no repair was attempted. */
  readonly repair: 'none' | 'succeeded' | 'failed';
  readonly behind?: ScrubState['behind'];
}

/** @returns the state after a scan */
export function recordScan(state: ScrubState | undefined, scan: ScanResult): ScrubState {
  const { atMs, damage, repair } = scan;
  const { looks, damaged, repaired, failed } = state?.counts ?? noScrubCounts;
  const isDamaged = damage.length > 0;
  const isRepaired = repair === 'succeeded';
  const behind = scan.behind ?? (isRepaired ? undefined : state?.behind);
  return {
    atMs,
    outcome: isRepaired ? 'repaired' : isDamaged ? 'damaged' : 'intact',
    damage: isRepaired ? [] : damage.slice(0, maxRecordedDamage),
    found: damage.length,
    counts: {
      looks: looks + 1,
      damaged: damaged + Number(isDamaged),
      repaired: repaired + Number(isRepaired),
      failed: failed + Number(repair === 'failed'),
    },
    failures: isDamaged && !isRepaired ? (state?.failures ?? 0) + Number(repair === 'failed') : 0,
    ...(behind === undefined ? {} : { behind }),
  };
}
