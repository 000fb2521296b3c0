// What a look over the policy on disk can find, what the host remembers of it, and when it looks again. Pure: how files
// are read, and how damage is repaired, is the agent's. A file that somebody edited is simply "changed on disk".
import { computeBackoffMs } from '../backoff.js';

export type DamagedPart = 'current' | 'generation' | 'tree' | 'manifest' | 'record' | 'archive';

export type DamageKind = 'missing' | 'extra' | 'changed' | 'type' | 'mode' | 'owner' | 'unreadable';

/** One thing on disk that is not what was signed, or not as Writ left it. */
export interface DamageFound {
  readonly generation: number;
  readonly part: DamagedPart;
  readonly kind: DamageKind;
  /** Left out where it is of no one bundle. */
  readonly bundle?: string;
  /** Directory of the tree, as `41-2c26b46b68ff.7`: the damage stands as long as a generation in use names it. */
  readonly tree?: string;
  /** Below the tree, the generation or the kept release; `.` for the whole of it. */
  readonly path: string;
}

/** What the ledger keeps of the last look, and of all looks. */
export interface ScrubState {
  /** Epoch milliseconds: when the last look ended. Of no look yet: when nothing was active, and all that is was staged later. */
  readonly atMs: number;
  readonly outcome: 'intact' | 'damaged' | 'repaired';
  /** What is damaged still, at most `maxKeptDamage` of it. */
  readonly damage: readonly DamageFound[];
  /** How many there were in all, when it was last looked. */
  readonly found: number;
  /** Since this host has its state directory. */
  readonly counts: ScrubCounts;
  /** Repairs in a row that did not succeed. */
  readonly failures: number;
  /** An older generation had to take the damaged one's place; it is so while this one is active. */
  readonly behind?: { readonly generation: number; readonly text: string };
}

export interface ScrubCounts {
  readonly looks: number;
  readonly damaged: number;
  readonly repaired: number;
  readonly failed: number;
}

export const noScrubCounts: ScrubCounts = { looks: 0, damaged: 0, repaired: 0, failed: 0 };

export const maxKeptDamage = 20;

/** True for damage that only a swap repairs: a link leads elsewhere, or a generation has other entries. */
export function isOfLinks({ part }: DamageFound): boolean {
  return part === 'current' || part === 'generation';
}

/** True for damage to a copy that is kept to make a tree again: the tree that is in use may be complete. */
export function isOfKept({ part }: DamageFound): boolean {
  return part === 'manifest' || part === 'record' || part === 'archive';
}

const words: Readonly<Record<DamageKind, string>> = {
  missing: 'is missing',
  extra: 'does not belong there',
  changed: 'changed on disk',
  type: 'is no longer the same kind of file',
  mode: 'has a different mode',
  owner: 'has a different owner',
  unreadable: 'cannot be read',
};

/** @returns one line for people, as `dns-edge: views/a.rpz changed on disk` */
export function damageText({ part, kind, bundle, path, generation }: DamageFound): string {
  const what = path === '.' ? '' : `${path} `;
  switch (part) {
    case 'current':
      return `the link \`current\` ${words[kind]}`;
    case 'generation':
      return `generation ${generation}: ${what === '' ? 'it' : `the entry ${path}`} ${words[kind]}`;
    case 'tree':
      return `${bundle}: ${what === '' ? 'its tree ' : what}${words[kind]}`;
    case 'manifest':
    case 'record':
    case 'archive':
      return `${bundle}: the kept ${part} ${words[kind]}`;
  }
}

/** @returns the first of them in words, and how many more there are */
export function damageSummary(damage: readonly DamageFound[], found: number = damage.length): string {
  const shown = damage.slice(0, 3).map(damageText);
  const more = found - shown.length;
  return more > 0 ? `${shown.join('; ')}; ${more} more` : shown.join('; ');
}

/** A repair has repaired it, or a cycle has replaced it: only what is in use now counts. */
export interface InUse {
  readonly generation: number | undefined;
  /** Directory of each active tree, by bundle. */
  readonly trees: ReadonlyMap<string, string>;
}

/** @returns what of the remembered damage still concerns the generation in use */
export function standingDamage(state: ScrubState | undefined, { generation, trees }: InUse): DamageFound[] {
  return (state?.damage ?? []).filter((one) =>
    one.tree === undefined || one.bundle === undefined
      ? one.generation === generation
      : trees.get(one.bundle) === one.tree,
  );
}

/**
 * What of the policy a look reads: every byte; names, types, sizes and modes; or the links, and what they and the records
 * name: trees, manifests and archives, without what is in them.
 */
export type LookDepth = 'digests' | 'sizes' | 'places';

export interface StartFacts {
  readonly ended: 'clean' | 'unclean';
  /** Whether the active policy was read in full since the host booted. */
  readonly readSinceBoot: 'yes' | 'no';
  /** Whether the next pull of a host that lives by cron looks when it is due; an agent looks by itself, and rests on nothing at its start. */
  readonly looksLater: 'pull' | 'nobody';
  /** Whether a loader or a worker is still to be brought to what is there. */
  readonly isOwed: 'yes' | 'no';
  readonly state: ScrubState | undefined;
  /** Undefined where no look is wanted in between. */
  readonly everyMs: number | undefined;
  readonly nowMs: number;
}

/**
 * @returns how much a start looks at. What no later look would see in its time is looked at now: only a pull whose host was
 *   read in full less than `everyMs` ago, and found whole, may rest on that.
 */
export function depthOfStart(facts: StartFacts): LookDepth {
  const { ended, readSinceBoot, looksLater, isOwed, state, everyMs, nowMs } = facts;
  if (ended === 'unclean' || readSinceBoot === 'no') return 'digests';
  if (looksLater !== 'pull' || everyMs === undefined) return 'sizes';
  const ageMs = nowMs - (state?.atMs ?? 0);
  // A clock that was set back says nothing of how long ago it was.
  const isDue = state === undefined || state.damage.length > 0 || ageMs < 0 || ageMs >= everyMs;
  if (isDue) return 'digests';
  return isOwed === 'yes' ? 'sizes' : 'places';
}

const firstRetryMs = 60_000;
/** A host that starts has better things to do at once. */
const leastWaitMs = 10_000;

/**
 * @returns milliseconds until the next look. After a repair that failed sooner: 1 min, doubling, never later than the
 *   interval. A clock that was set back makes nobody wait longer than one interval.
 */
export function nextLookMs(
  state: ScrubState | undefined,
  { everyMs, nowMs }: { readonly everyMs: number; readonly nowMs: number },
): number {
  if (state === undefined) return everyMs;
  const { failures, atMs } = state;
  const delayMs =
    failures === 0 ? everyMs : computeBackoffMs(failures, { firstMs: firstRetryMs, maxMs: everyMs });
  return Math.min(Math.max(atMs + delayMs - nowMs, Math.min(everyMs, leastWaitMs)), delayMs);
}

/**
 * @returns what is remembered of a full look at a host on which nothing is active. It finds no damage, and is no look to count;
 *   but whatever is active later was staged behind it, and staging digests every byte: the next pulls rest on that.
 */
export function afterNothing(state: ScrubState | undefined, atMs: number): ScrubState {
  const counts = state?.counts ?? noScrubCounts;
  return { atMs, outcome: 'intact', damage: [], found: 0, counts, failures: 0 };
}

/** The part of a look that the next state is made of. */
export interface LookEnd {
  readonly atMs: number;
  /** What was found. */
  readonly damage: readonly DamageFound[];
  /** `none`: nothing was tried. */
  readonly repair: 'none' | 'succeeded' | 'failed';
  readonly behind?: ScrubState['behind'];
}

/** @returns what is remembered after a look */
export function afterLook(state: ScrubState | undefined, look: LookEnd): ScrubState {
  const { atMs, damage, repair } = look;
  const { looks, damaged, repaired, failed } = state?.counts ?? noScrubCounts;
  const isDamaged = damage.length > 0;
  const isMended = repair === 'succeeded';
  const behind = look.behind ?? (isMended ? undefined : state?.behind);
  return {
    atMs,
    outcome: isMended ? 'repaired' : isDamaged ? 'damaged' : 'intact',
    damage: isMended ? [] : damage.slice(0, maxKeptDamage),
    found: damage.length,
    counts: {
      looks: looks + 1,
      damaged: damaged + Number(isDamaged),
      repaired: repaired + Number(isMended),
      failed: failed + Number(repair === 'failed'),
    },
    failures: isDamaged && !isMended ? (state?.failures ?? 0) + Number(repair === 'failed') : 0,
    ...(behind === undefined ? {} : { behind }),
  };
}
