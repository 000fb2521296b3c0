// The members of each group: reads them from the drivers and merges them into the ledger. A new member, or a different
// process than the one that answered, becomes `pending`; a departed member is kept for a while. Also waits for missing
// members, and marks workers as pending that a new configuration affects. Sends no notification.
import type { WorkerWait } from '../../core/cycle/cycle-report.js';
import { orUndefined, WritError } from '../../core/errors.js';
import { affectsGroup } from '../../core/release/affected-groups.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { answeringProcess, precedingNotice, processStartAtMs } from '../settled/runs-rules.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { Ledger, UnreadSet, WorkerLedger } from '../state/ledger.js';
import { otherProcessText, processOrigin, removeDeadMembers, withSoonReplacement } from './dead-workers.js';
import type { LivenessCheck } from './notify-context.js';
import { changesTo } from './notify-verbs.js';
import { type Member, readMembers } from './worker-groups.js';
import {
  groupOf,
  hasAnswered,
  pendingEntry,
  withMembers,
  withWorkers,
  workerKey,
  workerOf,
} from './worker-ledger.js';

/** The entry of a departed member is removed after this time; if it comes back, it counts as a new member. */
const keepDepartedMs = 600_000;
/** Limit for a group that always has new worker names: only the entries of the last departed members are kept. */
const maxDeparted = 256;

export interface MembershipOptions {
  /** Number of the active generation, which a new member must use. */
  readonly active: number;
  readonly groups: readonly WorkerGroup[];
  readonly livenessCheck: LivenessCheck;
}

/**
 * Reads the members of the groups and records the changes in the ledger.
 * @returns by group: the milliseconds that its driver took to list the members
 */
export async function refreshMembers(
  host: Host,
  options: MembershipOptions,
): Promise<ReadonlyMap<string, number>> {
  const { active, groups, livenessCheck } = options;
  const { workers: known } = host.ledger.read();
  const tookMs = new Map<string, number>();
  const begunMs = host.clock.monotonicMs();
  const found = await Promise.all(
    groups.map(async (group) => {
      const members = await readMembers(group);
      // Excludes the liveness check: its wait for absent workers would make the caller read this group less often.
      tookMs.set(group.config.name, host.clock.monotonicMs() - begunMs);
      return [
        group,
        members instanceof WritError ? members : await filterAlive(group, members, { known, livenessCheck }),
      ] as const;
    }),
  );
  // Read the ledger only now: an answer that was recorded while the drivers ran must not be lost.
  const before = host.ledger.read();
  const nowMs = host.clock.nowMs();
  const workers = removeUnconfigured(host, before.workers);
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
    // With a probe there is no need to guess whether a notification started the new process: the probe confirms it.
    const mayReplace = driver?.keepsProcess !== 'yes' && config.probe === undefined;
    const context = { active, nowMs, bootMs: host.clock.bootMs(), mayCome, mayForget, mayReplace };
    mergeMembers(workers, { group: name, members, context });
    for (const key of excessDeparted(name, workers)) delete workers[key];
  }
  const names = host.groups.map((one) => one.config.name);
  const left = Object.entries(unread).filter(([name]) => names.includes(name));
  host.ledger.write(withMembers(before, { workers, unread: left }));
  return tookMs;
}

/** Checks the members that `livenessCheck` selects: a check of every worker would open a connection to each every few seconds. */
function filterAlive(
  group: WorkerGroup,
  members: readonly Member[],
  { known, livenessCheck }: Pick<MembershipOptions, 'livenessCheck'> & { readonly known: Ledger['workers'] },
): Promise<readonly Member[]> {
  return removeDeadMembers(group, members, ({ worker, process }) => {
    const entry = known[workerKey(group.config.name, worker)];
    if (entry === undefined || entry.goneAtMs !== undefined) return true;
    // A replaced process is notified anyway, which shows its liveness. Without an identity the worker may be dead.
    const isOther = (entry.process ?? process) !== process;
    if (isOther && !hasIdentity(process)) return hasAnswered(entry);
    return livenessCheck === 'all' && hasAnswered(entry) && !isOther;
  });
}

/** @returns the entries of the groups that are configured and have a driver */
function removeUnconfigured(host: Host, workers: Ledger['workers']): Workers {
  const names = host.groups.filter((one) => one.driver !== undefined).map((one) => one.config.name);
  return Object.fromEntries(Object.entries(workers).filter(([key]) => names.includes(groupOf(key))));
}

interface MergeContext {
  readonly active: number;
  readonly nowMs: number;
  /** As Clock.bootMs. */
  readonly bootMs: number;
  /** A notification may replace the process of a worker in this group. */
  readonly mayReplace: boolean;
  /** Missing workers may still connect by themselves. */
  readonly mayCome: boolean;
  /** The group has its minimum of members. Otherwise departed members stay in the ledger until they are back. */
  readonly mayForget: boolean;
}

type Workers = Record<string, WorkerLedger>;

/** Updates the entries of one group in place: marks departed members, removes old ones, and adds new members. */
function mergeMembers(
  workers: Workers,
  { group, members, context }: { group: string; members: readonly Member[]; context: MergeContext },
): void {
  const there = new Set(members.map((one) => one.worker));
  for (const [key, entry] of Object.entries(workers)) {
    if (groupOf(key) !== group || there.has(workerOf(key))) continue;
    const left = departedEntry(entry, context);
    if (left === undefined) delete workers[key];
    else workers[key] = left;
  }
  for (const { worker, process } of members) {
    const key = workerKey(group, worker);
    workers[key] = memberEntry(workers[key], process, context);
  }
}

/** @returns keys of the departed members of a group above the limit: those that departed first */
function excessDeparted(group: string, workers: Ledger['workers']): readonly string[] {
  const away = Object.entries(workers).flatMap(([key, { goneAtMs }]) =>
    goneAtMs === undefined || groupOf(key) !== group ? [] : [{ key, goneAtMs }],
  );
  const newestFirst = away.sort((one, other) => other.goneAtMs - one.goneAtMs);
  return newestFirst.slice(maxDeparted).map(({ key }) => key);
}

function departedEntry(
  entry: WorkerLedger,
  { nowMs, mayCome, mayForget }: MergeContext,
): WorkerLedger | undefined {
  // The worker may be alive and about to connect, so it does not count as departed yet.
  if (mayCome && entry.goneAtMs === undefined) return entry;
  const { goneAtMs = nowMs } = entry;
  return mayForget && nowMs - goneAtMs > keepDepartedMs ? undefined : { ...entry, goneAtMs };
}

function memberEntry(entry: WorkerLedger | undefined, process: string, context: MergeContext): WorkerLedger {
  const { active, nowMs } = context;
  const renewed = (text: string): WorkerLedger => {
    const { goneAtMs: _, ...rest } = pendingEntry(entry, { wanted: active, text, nowMs });
    return { ...rest, process, appeared: true, ...precedingNotice(entry) };
  };
  if (entry === undefined) return renewed('has appeared');
  const { goneAtMs, ...known } = entry;
  // An entry of an older version has no process identity: the current process counts as the one that answered.
  const isSame = (entry.process ?? process) === process;
  // A dead worker has no process identity, so it cannot be a replacement.
  const startedAtMs = processStartAtMs(answeringProcess(process), context);
  const origin =
    context.mayReplace && hasIdentity(process) ? processOrigin(entry, { nowMs, startedAtMs }) : 'other';
  if (!isSame && origin !== 'notification') {
    const text = hasIdentity(process) ? otherProcessText(entry.process, process) : 'no longer has a process';
    return { ...renewed(text), ...(origin === 'unknown' ? withSoonReplacement(entry, nowMs) : {}) };
  }
  if (goneAtMs !== undefined && !hasIdentity(process)) return renewed('was gone, and is back');
  // The process that answered has ended, so its confirmation does not count any more.
  return { ...known, process, ...(isSame ? {} : { state: 'notified', replacedAtMs: nowMs }) };
}

/** @returns true for an identity that distinguishes the process from others; false if only the boot is known */
function hasIdentity(process: string): boolean {
  return !process.endsWith(':');
}

const pollIntervalMs = 50;

/**
 * Waits for the known workers that connect by themselves. They need a moment to find the socket of a standalone run, and a
 * pull would otherwise move the policy without them. Resolves when all known members have connected, or their time is over.
 * Never rejects because of a worker.
 */
export async function awaitWorkers(
  host: Pick<Host, 'groups' | 'ledger' | 'clock'>,
  signal: AbortSignal,
  onWait: OnWait = () => undefined,
): Promise<void> {
  for (const group of host.groups) {
    const missing = (): Promise<readonly string[]> => missingKnown(host, group);
    await awaitGroup(host, { group, missing, graceMs: group.driver?.mayComeForMs?.() ?? 0, signal, onWait });
  }
}

/** Called once for each group with missing members, so that a command can report why it waits. */
export type OnWait = (wait: WorkerWait) => void;

interface GroupWait {
  readonly group: WorkerGroup;
  /** @returns texts of the missing members; an empty array ends the wait */
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
  for (let isReported = false; clock.monotonicMs() < endMs && !signal.aborted; isReported = true) {
    const workers = await missing();
    if (workers.length === 0) return;
    const untilAtMs = clock.nowMs() + endMs - clock.monotonicMs();
    if (!isReported) onWait({ group: group.config.name, missing: workers, untilAtMs });
    await clock.sleep(pollIntervalMs, signal);
  }
}

/** The longest time that a requested pull waits for starting workers. */
const maxGraceMs = 30_000;

/**
 * For a requested pull: waits until each group has its minimum of members (`reset.min`), but at most for the shorter of its
 * `timeout` and 30 s. Returns at once if no generation is active yet, because workers may wait for the first one.
 */
export async function awaitMinimumMembers(
  host: Pick<Host, 'groups' | 'clock' | 'paths'>,
  signal: AbortSignal,
  onWait: OnWait = () => undefined,
): Promise<void> {
  const { groups, clock, paths } = host;
  if (orUndefined(() => activeGenerationNumber(paths)) === undefined) return;
  const begunMs = clock.monotonicMs();
  for (const group of groups) {
    const { reset } = group.config;
    // All groups share one time span: the wait for one group shortens that for the next.
    const graceMs = begunMs + Math.min(reset?.timeoutMs ?? 0, maxGraceMs) - clock.monotonicMs();
    await awaitGroup(host, { group, missing: () => missingOfMinimum(group), graceMs, signal, onWait });
  }
}

async function missingOfMinimum(group: WorkerGroup): Promise<readonly string[]> {
  const members = await readMembers(group);
  const { min = 0 } = group.config.reset ?? {};
  if (members instanceof WritError || members.length >= min) return [];
  return [`${min - members.length} of at least ${min}`];
}

async function missingKnown(
  { ledger }: Pick<Host, 'ledger'>,
  group: WorkerGroup,
): Promise<readonly string[]> {
  const members = await readMembers(group);
  if (!Array.isArray(members)) return [];
  const there = new Set(members.map((one) => one.worker));
  return Object.entries(ledger.read().workers).flatMap(([key, { goneAtMs }]) => {
    const isMissing = groupOf(key) === group.config.name && goneAtMs === undefined;
    return isMissing && !there.has(workerOf(key)) ? [workerOf(key)] : [];
  });
}

/**
 * Marks workers as pending that were last notified of an older generation, if the files that their group uses differ from
 * the active ones. A new configuration may let a group use files that an earlier move changed without a notification.
 */
export function noteNewlyAffected(host: Host): void {
  // The cycle reports a link that cannot be read.
  const active = orUndefined(() => activeGenerationNumber(host.paths));
  if (active === undefined) return;
  const ledger = host.ledger.read();
  const older = Object.entries(ledger.workers).filter(([, one]) => one.wanted !== active);
  const changedSince = changesTo(host, active);
  const concerned = older.filter(([key, { wanted }]) => {
    const group = host.config.workers.find((one) => one.name === groupOf(key));
    if (group === undefined) return false;
    const changed = changedSince(wanted);
    // If the older generation cannot be compared any more, notify the worker.
    return changed === undefined || affectsGroup(group, changed);
  });
  if (concerned.length === 0) return;
  const now = { wanted: active, text: 'bundles of its group have changed', nowMs: host.clock.nowMs() };
  const changed = concerned.map(([key, entry]): [string, WorkerLedger] => [key, pendingEntry(entry, now)]);
  host.ledger.write(withWorkers(ledger, changed));
}
