// What a start does before anything else: sweep leftovers, repair the state files, and finish or undo the swap that a
// crash left. Gathers the facts, also which generations are complete to go to; performs the plan of recovery-rules; decides
// nothing about trust.
import { isWritError } from '../../core/errors.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { digestsOf } from '../activation/commit-ledger.js';
import { type ExaminedGeneration, examineGeneration, isMendable, isUsable } from '../generations/examine.js';
import { releasesBrought, releasesNamedBy } from '../generations/generation-contents.js';
import { activeGenerationNumber, listGenerations } from '../generations/generations.js';
import { chooseTarget } from '../generations/rollback-target.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { withBlock, withCrashes } from '../select/holds-and-blocks.js';
import { repairNow } from '../select/pause.js';
import { addCrash, crashCountOf, type ReleaseDigests } from '../state/crash-rules.js';
import type { Host } from '../state/host.js';
import { clearJournal, readJournal, writeJournal } from '../state/journal.js';
import {
  type Journal,
  maxCrashes,
  planRecovery,
  type RecoveryFacts,
  type RecoveryPlan,
  rebuildJournal,
} from '../state/recovery-rules.js';
import { recordRefusals, removeRefusalsOf } from '../state/refusals.js';
import { fromJournalRefusal, tolerateDiskErrors } from '../state/restore-memory.js';
import { setAside } from '../state/set-aside.js';
import { noteRebuilt } from './notices.js';
import { mendStateFiles } from './rebuild-ledger.js';
import { finishSwap, type InterruptedSwap, stayBehindSwap, type Undo, undoSwap } from './recover-swap.js';
import { sweepLeftovers } from './sweep-leftovers.js';

export interface RecoveryOptions {
  readonly cycle: string;
  readonly signal: AbortSignal;
  /** Filled with what was read in full on the way. */
  readonly examined?: Examined;
}

/**
 * Recovers. Idempotent: a crash in it is recovered by the next start.
 * @returns the end of the unfinished cycle, or undefined when there was none
 * @throws WritError STATE_DAMAGED for a `current` that Writ did not make; DISK_*
 */
export async function recoverHost(host: Host, options: RecoveryOptions): Promise<CycleEnd | undefined> {
  sweepLeftovers(host);
  await mendStateFiles(host);
  const journal = readOrRebuild(host);
  if (journal === undefined) {
    host.log.info({ plan: 'none' }, 'recovery');
    return undefined;
  }
  const candidate = candidateOf(host, journal);
  const crashes = crashCountOf(host.ledger.read().crashes, candidate);
  const isBlocked = crashes < maxCrashes && isBlockedAlready(host, journal, candidate);
  const facts = { ...(await factsFor(host, journal, createLook(host, options))), isBlocked };
  const plan = planRecovery(journal, facts, crashes);
  host.log.info({ plan, journal, facts }, 'recovery');
  const found = { active: facts.current, isDamageKnown: facts.isTargetDamaged === true };
  return perform(host, plan, { ...options, journal, candidate, isBlocked, back: facts.restoreTarget, found });
}

/**
 * A journal is written whole or not at all, so a broken one is the work of a bad disk or of a hand. What it must have
 * said is in the disk and the ledger; it is kept aside, said once, and replaced in one rename.
 */
function readOrRebuild(host: Host): Journal | undefined {
  const { paths, durable } = host;
  try {
    return readJournal(paths);
  } catch (error) {
    if (!isWritError(error) || error.code !== 'STATE_DAMAGED') throw error;
    const journal = rebuildJournal(activeGenerationNumber(paths), host.ledger.read().lastKnownGood);
    const reason = journal === undefined ? 'no policy is active' : 'all workers are notified again';
    noteRebuilt(host, { path: paths.journal, text: `${error.message}; ${reason}` });
    setAside(durable, paths.journal);
    if (journal === undefined) clearJournal(paths, durable);
    else writeJournal(paths, durable, journal);
    return journal;
  }
}

/** What the swap brought; a repair brings nothing new, and is known by all that it holds. */
function candidateOf({ paths }: Host, journal: Journal): ReleaseDigests {
  const brought = releasesBrought(paths, journal);
  return digestsOf(brought.length > 0 ? brought : releasesNamedBy(paths, journal.to));
}

async function factsFor(host: Host, journal: Journal, look: Wholeness): Promise<RecoveryFacts> {
  const current = activeGenerationNumber(host.paths);
  return {
    ...(current === undefined ? {} : { current }),
    isIntact: await look.isWhole(journal.to),
    ...(await findWayBack(host, journal, look)),
    isCommitted: host.ledger.read().committedCycle === journal.cycle,
  };
}

/** A block before the third crash came from a restore that failed; this start repeats that restore. */
function isBlockedAlready({ ledger }: Host, { direction }: Journal, candidate: ReleaseDigests): boolean {
  const { blocked } = ledger.read();
  return direction === 'back' && blocked !== undefined && sameReleases(blocked.releases, candidate);
}

interface Attempt extends InterruptedSwap, Pick<Undo, 'found'> {
  readonly candidate: ReleaseDigests;
  readonly isBlocked: boolean;
}

async function perform(host: Host, plan: RecoveryPlan, attempt: Attempt): Promise<CycleEnd | undefined> {
  switch (plan.action) {
    case 'none':
      return undefined;
    case 'discard':
      clearJournal(host.paths, host.durable);
      return undefined;
    case 'clear':
      removeRefusalsOf(host, releasesBrought(host.paths, attempt.journal));
      clearJournal(host.paths, host.durable);
      return undefined;
    case 'finish':
      noteCrash(host, attempt, false);
      return finishSwap(host, attempt);
    case 'undo': {
      // A start on a full disk goes back all the same.
      using _ = tolerateDiskErrors(host);
      rememberUnrecorded(host, attempt.journal);
      const { crashes } = host.ledger.read();
      noteCrash(host, attempt, plan.shouldBlock);
      const undo = {
        ...attempt,
        back: plan.to,
        shouldBlock: plan.shouldBlock,
        shouldNotify: plan.shouldNotify,
      };
      const end = await undoSwap(host, undo);
      // Counted for a crash in this start alone.
      if (attempt.isBlocked) host.ledger.write(withCrashes(host.ledger.read(), crashes));
      return end;
    }
    case 'stay':
      noteCrash(host, attempt, plan.shouldBlock);
      return stayBehindSwap(host, { ...attempt, shouldBlock: plan.shouldBlock });
  }
}

/** A refusal that only the journal knows: without it the next cycle would activate the releases again. */
function rememberUnrecorded(host: Host, journal: Journal): void {
  const { refused } = journal;
  if (refused === undefined) return;
  const known = host.refusals.read().refusals;
  const releases = releasesBrought(host.paths, journal).filter(
    ({ bundle, manifest }) =>
      refused.bundles.includes(bundle) &&
      !known.some((one) => one.bundle === bundle && one.manifestDigest === manifest.digest),
  );
  if (releases.length > 0) recordRefusals(host, releases, fromJournalRefusal(refused));
}

/** Counted, and blocked, before it is tried: a crash in the attempt must find it so. */
function noteCrash(host: Host, { journal, candidate }: Attempt, shouldBlock: boolean): void {
  const ledger = host.ledger.read();
  const crashes = addCrash(ledger.crashes, candidate);
  const reason = `generation ${journal.to} did not finish; ${crashes.count - 1} earlier starts with it did not finish either`;
  const known = ledger.blocked;
  const releases = { ...known?.releases, ...crashes.manifestDigests };
  const isNew = shouldBlock && !sameReleases(known?.releases, releases);
  const counted = withCrashes(ledger, crashes);
  host.ledger.write(isNew ? withBlock(counted, { reason, atMs: host.clock.nowMs(), releases }) : counted);
}

function sameReleases(one: ReleaseDigests = {}, other: ReleaseDigests = {}): boolean {
  const names = Object.keys(other);
  return names.length === Object.keys(one).length && names.every((name) => one[name] === other[name]);
}

/** Generations that a recovery has read in full: a start that looks again need not read them twice. */
export type Examined = Map<number, ExaminedGeneration>;

interface Wholeness {
  readonly isWhole: (generation: number) => Promise<boolean>;
  /** The copies that are kept make the same releases again, without a network. */
  readonly isMendable: (generation: number) => Promise<boolean>;
}

/** @returns a look that remembers: a start asks about one generation more than once */
function createLook(host: Host, { signal, examined }: RecoveryOptions): Wholeness {
  const known = examined ?? new Map();
  const look = async (generation: number): Promise<ExaminedGeneration> => {
    const options = { contents: 'digests', pace: unboundedPace(signal) } as const;
    const found = known.get(generation) ?? (await examineGeneration(host, generation, options));
    known.set(generation, found);
    return found;
  };
  return {
    isWhole: async (generation) => isUsable(await look(generation)),
    isMendable: async (generation) => isMendable(await look(generation)),
  };
}

/**
 * Where an undo puts the link: the generation before the swap when it is complete, or when this start can make it again (an
 * older one would take an acknowledged release back); else the last known good one, else the newest that is complete and
 * that a rollback could go to, else the one that the swap brought. A repair that did not come to its end is not tried
 * again here: it may be what crashes.
 */
async function findWayBack(
  host: Host,
  journal: Journal,
  { isWhole, isMendable }: Wholeness,
): Promise<Pick<RecoveryFacts, 'restoreTarget' | 'isTargetDamaged'>> {
  const { from, to, kind } = journal;
  if (from === undefined) return { restoreTarget: 'nothing' };
  if (await isWhole(from)) return { restoreTarget: from };
  const mayMend = kind !== 'repair' && repairNow(host) === 'yes';
  if (mayMend && (await isMendable(from))) return { restoreTarget: from, isTargetDamaged: true };
  for (const number of othersOf(host, journal)) {
    if ((await isWhole(number)) && (await isSuitable(host, number))) return { restoreTarget: number };
  }
  return { restoreTarget: (await isWhole(to)) ? to : 'lost' };
}

function othersOf(host: Host, { from, to }: Journal): number[] {
  const { lastKnownGood, previous } = host.ledger.read();
  const all = listGenerations(host.paths).reverse();
  const first = [lastKnownGood, previous].filter((one) => one !== undefined && all.includes(one));
  const ordered = [...new Set([...(first as number[]), ...all])];
  return ordered.filter((one) => one !== from && one !== to);
}

/** Vouched for by the keys of today, and not withdrawn: as for any rollback that nobody insists on. */
async function isSuitable(host: Host, generation: number): Promise<boolean> {
  try {
    await chooseTarget(host, undefined, { generation, force: 'no' });
    return true;
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error, generation }, 'no rollback leads to this generation');
    return false;
  }
}
