// Who is there just now: the sets of all groups read again and laid over the ledger. A worker that appears, or that is
// another process than the one that answered, is `pending`; one that is gone is kept for a while. Also who must be waited
// for, and whom a new configuration lets use what it was not notified of. Notifies nobody.
import type { WorkerWait } from '../../core/cycle/cycle-report.js';
import { orUndefined, WritError } from '../../core/errors.js';
import { affectsGroup } from '../../core/release/affected-groups.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { answeringProcess, processStartAtMs } from '../settled/runs-rules.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { Ledger, UnreadSet, WorkerLedger } from '../state/ledger.js';
import { otherProcessText, processOrigin, soonReplaced, withoutDead } from './dead-workers.js';
import { changesTo } from './notify-verbs.js';
import { type Member, readMembers } from './worker-groups.js';
import {
  groupOf,
  hasAnswered,
  pending,
  withSets,
  withWorkers,
  workerKey,
  workerOf,
} from './worker-ledger.js';

/** A worker that is gone for longer is forgotten: it is notified as a new one should it ever come back. */
const keepGoneMs = 600_000;
/** And of a group whose workers have ever new names, all but the last of them. */
const maxGone = 256;

export interface SetsOptions {
  /** Number of the active generation: what a worker that appears is to use. */
  readonly active: number;
  readonly groups: readonly WorkerGroup[];
  /** Who is asked whether it lives, though its driver lists it: everybody who answered, or only who was gone. */
  readonly doubt: 'the-answered' | 'the-gone';
}

/**
 * Reads the sets and notes what has changed; without a change nothing is written.
 * @returns how long each took, in milliseconds by the names of the groups
 */
export async function readSets(host: Host, options: SetsOptions): Promise<ReadonlyMap<string, number>> {
  const { active, groups, doubt } = options;
  const { workers: known } = host.ledger.read();
  const tookMs = new Map<string, number>();
  const begunMs = host.clock.monotonicMs();
  const found = await Promise.all(
    groups.map(async (group) => {
      const members = await readMembers(group);
      // Not with the patience that is had with who may be away for a moment: whoever is back is soon seen again.
      tookMs.set(group.config.name, host.clock.monotonicMs() - begunMs);
      return [
        group,
        members instanceof WritError ? members : await livingOf(group, members, { known, doubt }),
      ] as const;
    }),
  );
  // Read before, written after: an answer that came meanwhile must not be lost.
  const before = host.ledger.read();
  const nowMs = host.clock.nowMs();
  const workers = configured(host, before.workers);
  const unread: Record<string, UnreadSet> = { ...before.unreadSets };
  for (const [{ config, driver }, members] of found) {
    const { name } = config;
    if (members instanceof WritError) {
      unread[name] = { text: members.message, sinceMs: unread[name]?.sinceMs ?? nowMs };
      continue;
    }
    delete unread[name];
    const mayCome = (driver?.mayComeForMs?.() ?? 0) > 0;
    const mayForget = members.length >= (config.reset?.min ?? 0);
    // A probe knows better than any guess whose doing another process is.
    const mayReplace = driver?.keepsProcess !== 'yes' && config.probe === undefined;
    const look = { active, nowMs, bootMs: host.clock.bootMs(), mayCome, mayForget, mayReplace };
    layOver(workers, { group: name, members, look });
    for (const key of longestGone(name, workers)) delete workers[key];
  }
  const names = host.groups.map((one) => one.config.name);
  const left = Object.entries(unread).filter(([name]) => names.includes(name));
  host.ledger.write(withSets(before, { workers, unread: left }));
  return tookMs;
}

/** A connection for each worker that answered is too much for every few seconds: who was gone is asked each time. */
function livingOf(
  group: WorkerGroup,
  members: readonly Member[],
  { known, doubt }: Pick<SetsOptions, 'doubt'> & { readonly known: Ledger['workers'] },
): Promise<readonly Member[]> {
  return withoutDead(group, members, ({ worker, process }) => {
    const entry = known[workerKey(group.config.name, worker)];
    if (entry === undefined || entry.goneAtMs !== undefined) return true;
    // Who is another process by now is notified, and shows itself so; who has no name any more may be dead.
    const isOther = (entry.process ?? process) !== process;
    if (isOther && !isNamed(process)) return hasAnswered(entry);
    return doubt === 'the-answered' && hasAnswered(entry) && !isOther;
  });
}

/** A group that is not configured any more, or notifies nobody, has no workers. */
function configured(host: Host, workers: Ledger['workers']): Workers {
  const names = host.groups.filter((one) => one.driver !== undefined).map((one) => one.config.name);
  return Object.fromEntries(Object.entries(workers).filter(([key]) => names.includes(groupOf(key))));
}

interface Look {
  readonly active: number;
  readonly nowMs: number;
  /** As Clock.bootMs. */
  readonly bootMs: number;
  /** A notification may make another process of a worker of this set. */
  readonly mayReplace: boolean;
  /** Who is not there may come yet. */
  readonly mayCome: boolean;
  /** As many are there as must be: where they are not, that somebody was up is known until it is back. */
  readonly mayForget: boolean;
}

type Workers = Record<string, WorkerLedger>;

/** Changes the entries of one set to what is there now; who is gone for long is forgotten. */
function layOver(
  workers: Workers,
  { group, members, look }: { group: string; members: readonly Member[]; look: Look },
): void {
  const there = new Set(members.map((one) => one.worker));
  for (const [key, entry] of Object.entries(workers)) {
    if (groupOf(key) !== group || there.has(workerOf(key))) continue;
    const left = gone(entry, look);
    if (left === undefined) delete workers[key];
    else workers[key] = left;
  }
  for (const { worker, process } of members) {
    const key = workerKey(group, worker);
    workers[key] = present(workers[key], process, look);
  }
}

/** @returns keys of those that are too many */
function longestGone(group: string, workers: Ledger['workers']): readonly string[] {
  const away = Object.entries(workers).flatMap(([key, { goneAtMs }]) =>
    goneAtMs === undefined || groupOf(key) !== group ? [] : [{ key, goneAtMs }],
  );
  const newestFirst = away.sort((one, other) => other.goneAtMs - one.goneAtMs);
  return newestFirst.slice(maxGone).map(({ key }) => key);
}

function gone(entry: WorkerLedger, { nowMs, mayCome, mayForget }: Look): WorkerLedger | undefined {
  // It may live, and be on its way: that it is gone, nobody knows yet.
  if (mayCome && entry.goneAtMs === undefined) return entry;
  const { goneAtMs = nowMs } = entry;
  return mayForget && nowMs - goneAtMs > keepGoneMs ? undefined : { ...entry, goneAtMs };
}

function present(entry: WorkerLedger | undefined, process: string, look: Look): WorkerLedger {
  const { active, nowMs } = look;
  const renewed = (text: string): WorkerLedger => {
    const { goneAtMs: _, ...rest } = pending(entry, { wanted: active, text, nowMs });
    return { ...rest, process, appeared: true };
  };
  if (entry === undefined) return renewed('has appeared');
  const { goneAtMs, ...known } = entry;
  // Notified by an older version, or by itself: whose answer it was is not known, and asked from now on.
  const isSame = (entry.process ?? process) === process;
  // A dead worker has no name, and no notification made it.
  const startedAtMs = processStartAtMs(answeringProcess(process), look);
  const origin = look.mayReplace && isNamed(process) ? processOrigin(entry, { nowMs, startedAtMs }) : 'other';
  if (!isSame && origin !== 'notification') {
    const text = isNamed(process) ? otherProcessText(entry.process, process) : 'no longer has a process';
    return { ...renewed(text), ...(origin === 'unknown' ? soonReplaced(entry, nowMs) : {}) };
  }
  if (goneAtMs !== undefined && !isNamed(process)) return renewed('was gone, and is back');
  // The process that answered is not there any more: its proof is over.
  return { ...known, process, ...(isSame ? {} : { state: 'notified', replacedAtMs: nowMs }) };
}

/** A process that its driver can tell from another. */
function isNamed(process: string): boolean {
  return !process.endsWith(':');
}

const lookAgainMs = 50;

/**
 * Workers that come to the agent by themselves: where a command without an agent opens their socket, they need a moment to
 * find it. Waits for those that are known, or a pull would move the policy without them.
 * Resolves when all that were there have come again, or their time for it is over. Never rejects for what workers do.
 */
export async function awaitWorkers(
  host: Pick<Host, 'groups' | 'ledger' | 'clock'>,
  signal: AbortSignal,
  onWait: OnWait = () => undefined,
): Promise<void> {
  for (const group of host.groups) {
    const missing = (): Promise<readonly string[]> => missingOf(host, group);
    await awaitGroup(host, { group, missing, graceMs: group.driver?.mayComeForMs?.() ?? 0, signal, onWait });
  }
}

/** Told once a group, when somebody has to be waited for: a person must not wonder what a command does. */
export type OnWait = (wait: WorkerWait) => void;

interface GroupWait {
  readonly group: WorkerGroup;
  /** Who is waited for, in words; nobody ends the wait. */
  readonly missing: () => Promise<readonly string[]>;
  readonly graceMs: number;
  readonly signal: AbortSignal;
  readonly onWait: OnWait;
}

async function awaitGroup(
  { clock }: Pick<Host, 'clock'>,
  { group, missing, graceMs, signal, onWait }: GroupWait,
): Promise<void> {
  const endMs = clock.monotonicMs() + graceMs;
  for (let isTold = false; clock.monotonicMs() < endMs && !signal.aborted; isTold = true) {
    const workers = await missing();
    if (workers.length === 0) return;
    const untilAtMs = clock.nowMs() + endMs - clock.monotonicMs();
    if (!isTold) onWait({ group: group.config.name, missing: workers, untilAtMs });
    await clock.sleep(lookAgainMs, signal);
  }
}

/** A person waits this long at most for workers that are on their way. */
const maxGraceMs = 30_000;

/**
 * For who asked a pull: waits until each group has as many workers as its `min`, or its grace is over, the shorter of its
 * `timeout` and 30 s. Where no policy is active yet nobody is waited for: workers may wait for it.
 */
export async function awaitEnough(
  host: Pick<Host, 'groups' | 'clock' | 'paths'>,
  signal: AbortSignal,
  onWait: OnWait = () => undefined,
): Promise<void> {
  const { groups, clock, paths } = host;
  if (orUndefined(() => activeGenerationNumber(paths)) === undefined) return;
  const begunMs = clock.monotonicMs();
  for (const group of groups) {
    const { reset } = group.config;
    // All are waited for at the same time: what one group took is gone for the next.
    const graceMs = begunMs + Math.min(reset?.timeoutMs ?? 0, maxGraceMs) - clock.monotonicMs();
    await awaitGroup(host, { group, missing: () => missingOfMin(group), graceMs, signal, onWait });
  }
}

async function missingOfMin(group: WorkerGroup): Promise<readonly string[]> {
  const members = await readMembers(group);
  const { min = 0 } = group.config.reset ?? {};
  if (members instanceof WritError || members.length >= min) return [];
  return [`${min - members.length} of at least ${min}`];
}

async function missingOf({ ledger }: Pick<Host, 'ledger'>, group: WorkerGroup): Promise<readonly string[]> {
  const members = await readMembers(group);
  if (!Array.isArray(members)) return [];
  const there = new Set(members.map((one) => one.worker));
  return Object.entries(ledger.read().workers).flatMap(([key, { goneAtMs }]) => {
    const isMissing = groupOf(key) === group.config.name && goneAtMs === undefined;
    return isMissing && !there.has(workerOf(key)) ? [workerOf(key)] : [];
  });
}

/**
 * A new configuration may let a group use files that an earlier move changed without notifying it. Makes workers pending that
 * were notified of another generation than the active one, where what their group uses differs.
 */
export function noteNewlyAffected(host: Host): void {
  // A link that cannot be read is the cycle's to say.
  const active = orUndefined(() => activeGenerationNumber(host.paths));
  if (active === undefined) return;
  const ledger = host.ledger.read();
  const older = Object.entries(ledger.workers).filter(([, one]) => one.wanted !== active);
  const changedSince = changesTo(host, active);
  const concerned = older.filter(([key, { wanted }]) => {
    const group = host.config.workers.find((one) => one.name === groupOf(key));
    if (group === undefined) return false;
    const changed = changedSince(wanted);
    // Where a generation cannot be compared any more nobody knows: such a worker is notified.
    return changed === undefined || affectsGroup(group, changed);
  });
  if (concerned.length === 0) return;
  const now = { wanted: active, text: 'bundles of its group have changed', nowMs: host.clock.nowMs() };
  const changed = concerned.map(([key, entry]): [string, WorkerLedger] => [key, pending(entry, now)]);
  host.ledger.write(withWorkers(ledger, changed));
}
