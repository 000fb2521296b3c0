// Removes one flush from a recorded cycle and searches a state that breaks the invariant: this proves that the replay can
// fail, and that each flush is needed. Uses the weak file system only, because on ext4 any flush commits everything before it.
// Also lists whether each flush is needed; a flush without a rule is a failure.
import { type DiskRecording, type PlacedChange, plainName } from '../power/disk-image.js';
import type { RecordedCycle } from './record-cycle.js';
import { distinctStates, type ReplayOptions, replay, type Violation } from './replay-states.js';

export interface RecordedFlush {
  /** Index of the change. */
  readonly index: number;
  /** The flushed path and the change before it: equal in every recording. */
  readonly name: string;
}

export function flushesOf({ changes }: DiskRecording): RecordedFlush[] {
  const count = new Map<string, number>();
  return changes.flatMap((flush, index) => {
    if (flush.kind !== 'flush' && flush.kind !== 'flush-all') return [];
    const before = changes.slice(0, index).findLast(({ kind }) => kind === 'entries' || kind === 'data');
    const name = `${flushed(flush, changes)}, behind ${short(before?.label ?? 'the beginning')}`;
    const nth = (count.get(name) ?? 0) + 1;
    count.set(name, nth);
    return [{ index, name: nth === 1 ? name : `${name} (${nth})` }];
  });
}

/** Names a temporary file by its later name. */
function flushed(flush: PlacedChange, changes: readonly PlacedChange[]): string {
  const renamed = changes.find(
    (one) =>
      flush.kind === 'flush' &&
      one.kind === 'entries' &&
      one.effects.length === 2 &&
      one.effects[0]?.node === flush.node,
  );
  if (flush.label.endsWith('TMP') && renamed !== undefined)
    return short(`fsync new ${renamed.label.split(' -> ')[1]}`);
  return short(flush.label);
}

function short(label: string): string {
  return plainName(label)
    .replaceAll(/lib\/writ\//g, '')
    .replace(/lib\/writ$/, 'state');
}

export interface FlushRule {
  readonly flush: RegExp;
  /** `each`: every one is needed. `some`: others of the same name are not. `spare`: none is needed. */
  readonly kind: 'each' | 'some' | 'spare';
  /** For `some`: a cycle in which at least one is needed; omitted when no recorded cycle shows it. */
  readonly neededIn?: string;
  /** Cycles in which a start rebuilds what was lost, so that the removal breaks nothing. */
  readonly repairedIn?: readonly string[];
  readonly why: string;
}

const rules: readonly FlushRule[] = [
  { flush: /^flush-all/, kind: 'each', why: 'the files of the new trees: nothing else flushes them' },
  { flush: /^fsync policy, behind rename .* -> policy\/current$/, kind: 'each', why: 'the commit point' },
  {
    flush: /^fsync new journal\.json,/,
    kind: 'spare',
    why: 'a journal that cannot be read is made again of the disk and the ledger; flushed, no start has to guess',
  },
  {
    flush: /, behind (?:write|create|open|unlink) (?:journal\.)?reserve/,
    kind: 'spare',
    why: 'a start makes a reserve again that is not whole',
  },
  {
    flush: /^fsync new ledger\.json,/,
    kind: 'some',
    neededIn: 'rollback',
    why: 'what stands nowhere else is lost, as a hold; the rest can be made again',
  },
  {
    flush: /^fsync state, behind rename TMP -> journal\.json/,
    kind: 'each',
    repairedIn: ['repair'],
    why: 'a moved link without a journal is not made up for',
  },
  {
    flush: /^fsync state, behind rename TMP -> ledger\.json/,
    kind: 'some',
    neededIn: 'rollback',
    why: 'the one of the commit is needed; others are followed by `sync -f`, or by the journal in the same directory, before anything stands on them',
  },
  {
    flush: /^fsync state, behind unlink journal\.json/,
    kind: 'spare',
    why: 'a journal that comes back is finished once more, and that is idempotent',
  },
  {
    flush:
      /^fsync staging\/CYCLE\/\d+\/record-[\w-]+(?:\/(?:manifest|targets|record)\.json)?, behind (?:write|create)/,
    kind: 'each',
    repairedIn: ['repair'],
    why: 'the kept proof of the release',
  },
  { flush: /^fsync staging\/CYCLE\/\d+\/generation,/, kind: 'each', why: 'the links of the generation' },
  {
    flush: /^fsync policy\/bundles\/[\w-]+, behind rename staging/,
    kind: 'each',
    why: 'the name of the new tree',
  },
  {
    flush: /^fsync archives\/[\w-]+, behind rename staging/,
    kind: 'each',
    // In this cycle it replaces an older copy, which a start restores.
    repairedIn: ['a start behind a cut before the link'],
    why: 'the name of the kept release',
  },
  {
    flush: /^fsync policy\/generations, behind rename /,
    kind: 'each',
    why: 'the name of the new generation; or an old one that comes back without its trees keeps all others from being collected',
  },
  {
    flush: /^fsync (?:policy\/bundles|archives), behind rename/,
    kind: 'some',
    neededIn: 'first start',
    why: 'needed where the bundle is new and has a new directory; else no name has changed in it',
  },
  {
    flush: /^fsync (?:history\.jsonl|state), behind write history\.jsonl/,
    kind: 'some',
    why: 'the line of a move is written again by the next start; that of a refusal, or of a rollback that failed, is in no other place',
  },
  {
    flush: /^fsync new trust\//,
    kind: 'some',
    neededIn: 'new keys and no new release',
    why: 'what was accepted is not gone back behind; where `sync -f` follows before anything is acknowledged, it does the same',
  },
  {
    flush: /^fsync trust(?:\/roots)?, behind rename/,
    kind: 'some',
    neededIn: 'new keys and no new release',
    why: 'as the files of the trust store; root.json and the history of roots repair each other',
  },
  {
    flush: /^fsync partials\/[0-9a-f]{64},/,
    kind: 'spare',
    why: '`sync -f` follows before the archive is kept',
  },
  {
    flush: /^fsync staging\/CYCLE\/\d+(?:\/(?:fetch|record)-[\w-]+)?, behind rename/,
    kind: 'spare',
    why: 'staging is swept, whatever is in it; the archive in the record is flushed with the rest of the record',
  },
  {
    flush: /^fsync staging\/CYCLE, behind rename/,
    kind: 'spare',
    why: 'staging is swept, whatever is in it',
  },
  {
    flush: /^fsync (?:policy\/bundles|archives)\/[\w-]+, behind rename (?:policy|archives)/,
    kind: 'spare',
    why: 'what no generation names may come back: it is collected again',
  },
  {
    flush: /^fsync policy\/generations, behind rmdir/,
    kind: 'spare',
    why: 'each move out of the directory was flushed already',
  },
];

/**
 * @returns the claims to check for a cycle: the removal of each of these flushes, or of one of a group, must break the
 * invariant
 */
export function claimsAbout(cycle: RecordedCycle): {
  readonly each: RecordedFlush[];
  readonly oneOf: RecordedFlush[][];
} {
  const flushes = flushesOf(cycle.recording).map((flush) => ({ flush, rule: verdictOf(flush) }));
  const each = flushes.filter(({ rule }) => rule.kind === 'each').map(({ flush }) => flush);
  const groups = rules
    .filter(({ neededIn }) => neededIn === cycle.name)
    .map((rule) => flushes.filter((one) => one.rule === rule).map(({ flush }) => flush));
  // Begin with the last: earlier durable changes can be lost only with it.
  return { each, oneOf: groups.map((group) => group.reverse()) };
}

/** Whether the result of a trial matches the rule. */
export function agrees(rule: FlushRule, cycle: string, isNeeded: boolean): boolean {
  if (rule.kind === 'some' || (!isNeeded && rule.repairedIn?.includes(cycle))) return true;
  return (rule.kind === 'each') === isNeeded;
}

/** @throws Error for a flush without a rule */
export function verdictOf({ name }: RecordedFlush): FlushRule {
  const rule = rules.find(({ flush }) => flush.test(name));
  if (rule === undefined) throw new Error(`add a rule whether this flush is needed, and why: ${name}`);
  return rule;
}

export interface FlushTrial {
  readonly tried: number;
  /** The first state that breaks the invariant; absent when none does. */
  readonly violation?: Violation;
}

/** Tries the states that become possible without the flush. */
export async function judgeFlush(
  cycle: RecordedCycle,
  flush: RecordedFlush,
  options: Omit<ReplayOptions, 'profiles' | 'without'> & { readonly known: ReadonlySet<string> },
): Promise<FlushTrial> {
  // Before the flush nothing differs, and at the flush everything was possible at the moment before.
  const from = flush.index + 1;
  const without = new Set([flush.index]);
  const { tried, violations } = await replay(cycle, {
    ...options,
    profiles: ['posix'],
    from,
    without,
    maxViolations: 1,
  });
  const [violation] = violations;
  return { tried, ...(violation === undefined ? {} : { violation }) };
}

/** @returns digests of all possible states with every flush in place */
export function knownStates(
  cycle: RecordedCycle,
  options: Omit<ReplayOptions, 'profiles'>,
): ReadonlySet<string> {
  return new Set(distinctStates(cycle, { ...options, profiles: ['posix'] }).keys());
}
