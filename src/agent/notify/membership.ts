// Who is there just now: the sets of all groups read anew and laid over the ledger. A worker that appears, or that is
// another process than the one that answered, is `waiting`; one that is gone is kept for a while. Tells nobody.
import { WritError } from '../../core/errors.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { Ledger, UnreadSet, WorkerLedger } from '../state/ledger.js';
import { withoutDead } from './dead-workers.js';
import { type Member, readMembers, workerKey } from './worker-groups.js';
import { groupOf, isDue, waiting, workerOf } from './worker-ledger.js';

/** A worker that is gone for longer is forgotten: it is told as a new one should it ever come back. */
const keepGoneMs = 600_000;
/** And of a group whose workers have ever new names, all but the last of them. */
const maxGone = 256;

export interface SetsOptions {
  /** Number of the active generation: what a worker that appears is to use. */
  readonly active: number;
  /** Only these; all of them when it is left out. */
  readonly groups?: readonly WorkerGroup[];
  /** Who is asked whether it lives, though its driver lists it: everybody who answered, or only who was gone. */
  readonly doubt: 'the-answered' | 'the-gone';
}

/**
 * Reads the sets and notes what has changed; without a change nothing is written.
 * @returns how long each took, in milliseconds by the names of the groups
 */
export async function readSets(host: Host, options: SetsOptions): Promise<ReadonlyMap<string, number>> {
  const { active, groups = host.groups, doubt } = options;
  const { workers: known } = host.ledger.read();
  const tookMs = new Map<string, number>();
  const begunMs = host.clock.monotonicMs();
  const found = await Promise.all(
    groups.map(async (group) => {
      const members = await readLiving(group, { known, doubt });
      tookMs.set(group.config.name, host.clock.monotonicMs() - begunMs);
      return [group.config.name, members] as const;
    }),
  );
  // Read before, written after: an answer that came meanwhile must not be lost.
  const before = host.ledger.read();
  const look = { active, nowMs: host.clock.nowMs() };
  const sets = new Map(found);
  const workers = { ...configured(host, before.workers) };
  const unread: Record<string, UnreadSet> = { ...before.unreadSets };
  for (const [name, members] of sets) {
    if (members instanceof WritError) {
      unread[name] = { text: members.message, sinceMs: unread[name]?.sinceMs ?? look.nowMs };
      continue;
    }
    delete unread[name];
    const driver = groups.find((one) => one.config.name === name)?.driver;
    const mayCome = (driver?.mayComeForMs?.() ?? 0) > 0;
    const own = { ...look, mayReplace: driver?.keepsProcess !== 'yes', mayCome };
    for (const [key, entry] of Object.entries(setOf(name, members, { workers, look: own }))) {
      if (entry === undefined) delete workers[key];
      else workers[key] = entry;
    }
  }
  for (const name of sets.keys()) for (const key of longestGone(name, workers)) delete workers[key];
  const { unreadSets: _, ...ledger } = before;
  const names = host.groups.map((one) => one.config.name);
  const left = Object.entries(unread).filter(([name]) => names.includes(name));
  host.ledger.write({
    ...ledger,
    workers,
    ...(left.length === 0 ? {} : { unreadSets: Object.fromEntries(left) }),
  });
  return tookMs;
}

/** A connection for each worker that answered is too much for every few seconds: who was gone is asked each time. */
async function readLiving(
  group: WorkerGroup,
  { known, doubt }: Pick<SetsOptions, 'doubt'> & { readonly known: Ledger['workers'] },
): Promise<readonly Member[] | WritError> {
  const members = await readMembers(group);
  if (members instanceof WritError) return members;
  return withoutDead(group, members, ({ worker, process }) => {
    const entry = known[workerKey(group.config.name, worker)];
    if (entry === undefined || entry.goneAtMs !== undefined) return true;
    const hasAnswered = entry.state === 'confirmed' || entry.state === 'told';
    // Who is another process by now is told, and shows itself so.
    return doubt === 'the-answered' && hasAnswered && (entry.process ?? process) === process;
  });
}

/** A group that is not configured any more, or tells nobody, has no workers. */
function configured(host: Host, workers: Ledger['workers']): Ledger['workers'] {
  const names = host.groups.filter((one) => one.driver !== undefined).map((one) => one.config.name);
  return Object.fromEntries(Object.entries(workers).filter(([key]) => names.includes(groupOf(key))));
}

interface Look {
  readonly active: number;
  readonly nowMs: number;
  /** A tell may make another process of a worker of this set. */
  readonly mayReplace: boolean;
  /** Who is not there may come yet. */
  readonly mayCome: boolean;
}

/** @returns what has changed in one set; undefined for who is forgotten */
function setOf(
  group: string,
  members: readonly Member[],
  { workers, look }: { readonly workers: Ledger['workers']; readonly look: Look },
): Record<string, WorkerLedger | undefined> {
  const there = new Map(members.map((one) => [one.worker, one]));
  const changes: Record<string, WorkerLedger | undefined> = {};
  for (const [key, entry] of Object.entries(workers)) {
    if (groupOf(key) === group && !there.has(workerOf(key))) changes[key] = gone(entry, look);
  }
  for (const { worker, process } of members) {
    const key = workerKey(group, worker);
    changes[key] = present(workers[key], process, look);
  }
  return changes;
}

/** @returns keys of those that are too many */
function longestGone(group: string, workers: Ledger['workers']): readonly string[] {
  const away = Object.entries(workers).flatMap(([key, { goneAtMs }]) =>
    goneAtMs === undefined || groupOf(key) !== group ? [] : [{ key, goneAtMs }],
  );
  const newestFirst = away.sort((one, other) => other.goneAtMs - one.goneAtMs);
  return newestFirst.slice(maxGone).map(({ key }) => key);
}

function gone(entry: WorkerLedger, { nowMs, mayCome }: Look): WorkerLedger | undefined {
  // It may live with what it was told before: that it uses nothing, nobody knows yet.
  if (mayCome && isDue(entry)) return entry;
  const { goneAtMs = nowMs } = entry;
  return nowMs - goneAtMs > keepGoneMs ? undefined : { ...entry, goneAtMs };
}

function present(entry: WorkerLedger | undefined, process: string, look: Look): WorkerLedger {
  const { active, nowMs } = look;
  const due = (text: string): WorkerLedger => {
    const { goneAtMs: _, ...rest } = waiting(entry, { wanted: active, text, nowMs });
    return { ...rest, process, appeared: true };
  };
  if (entry === undefined) return due('has appeared');
  const { goneAtMs, ...known } = entry;
  // Told by an older version, or by itself: whose answer it was is not known, and asked from now on.
  const isSame = (entry.process ?? process) === process;
  if (!isSame && !(look.mayReplace && isReplacedByTell(entry, nowMs)))
    return due('is another process than before');
  if (goneAtMs !== undefined && !isNamed(process)) return due('was gone, and is back');
  return { ...known, process };
}

/** Long enough for a daemon that answers a reload with another process of itself. */
const replacedWithinMs = 15_000;

/**
 * A daemon that replaces its own process at a tell would be told for ever: who appears right behind its answer is the one
 * that answered, and has read what is active at its start.
 */
function isReplacedByTell({ state, toldAtMs }: WorkerLedger, nowMs: number): boolean {
  const hasAnswered = state === 'told' || state === 'confirmed';
  return hasAnswered && toldAtMs !== undefined && toldAtMs <= nowMs && nowMs - toldAtMs <= replacedWithinMs;
}

/** A process that its driver can tell from another. */
function isNamed(process: string): boolean {
  return !process.endsWith(':');
}
