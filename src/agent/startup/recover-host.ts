// Recovers a host after a crash: removes leftovers, repairs state files, and finishes or undoes an interrupted swap. This
// file gathers the facts, for example which generations are intact, and performs the plan of recovery-rules.ts. It makes
// no decision about trust.
import { isWritError } from '../../core/errors.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { digestsOf } from '../activation/commit-ledger.js';
import {
  canRepairLocally,
  type ExaminedGeneration,
  examineGeneration,
  isUsable,
} from '../generations/examine.js';
import { findNewReleases, readNamedReleases } from '../generations/generation-contents.js';
import { activeGenerationNumber, listGenerations } from '../generations/generations.js';
import { chooseRollbackTarget } from '../generations/rollback-target.js';
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
import { recordRebuiltFile } from './notices.js';
import { repairStateFiles } from './rebuild-ledger.js';
import {
  finishSwap,
  type InterruptedSwap,
  keepLinkAfterSwap,
  type SwapUndo,
  undoSwap,
} from './recover-swap.js';
import { sweepLeftovers } from './sweep-leftovers.js';

export interface RecoveryOptions {
  readonly cycle: string;
  readonly signal: AbortSignal;
  /** Receives the generations that recovery reads in full. */
  readonly examined?: ExaminedGenerations;
}

/**
 * Recovers the host. Idempotent: the next start also recovers from a crash in this function.
 * @returns the end of the unfinished cycle, or undefined when there was none
 * @throws WritError STATE_DAMAGED for a `current` that Writ did not make; DISK_*
 */
export async function recoverHost(host: Host, options: RecoveryOptions): Promise<CycleEnd | undefined> {
  sweepLeftovers(host);
  await repairStateFiles(host);
  const journal = readOrRebuildJournal(host);
  if (journal === undefined) {
    host.log.info({ plan: 'none' }, 'recovery');
    return undefined;
  }
  const candidate = candidateDigests(host, journal);
  const crashes = crashCountOf(host.ledger.read().crashes, candidate);
  const isBlocked = crashes < maxCrashes && isBlockedAlready(host, journal, candidate);
  const facts = { ...(await gatherFacts(host, journal, createExaminer(host, options))), isBlocked };
  const plan = planRecovery(journal, facts, crashes);
  host.log.info({ plan, journal, facts }, 'recovery');
  const found = { active: facts.current, isDamageKnown: facts.isTargetDamaged === true };
  return performPlan(host, plan, {
    ...options,
    journal,
    candidate,
    isBlocked,
    back: facts.restoreTarget,
    found,
  });
}

/**
 * Reads the journal, and rebuilds a damaged one from the link and the ledger. Journals are written atomically, so only a
 * faulty disk or a manual edit damages one. The damaged file is set aside and reported once; one rename replaces it.
 * @returns undefined without a journal, and for a damaged one where no policy is active
 */
function readOrRebuildJournal(host: Host): Journal | undefined {
  const { paths, durable } = host;
  try {
    return readJournal(paths);
  } catch (error) {
    if (!isWritError(error) || error.code !== 'STATE_DAMAGED') throw error;
    const journal = rebuildJournal(activeGenerationNumber(paths), host.ledger.read().lastKnownGood);
    const reason = journal === undefined ? 'no policy is active' : 'all workers are notified again';
    recordRebuiltFile(host, { path: paths.journal, text: `${error.message}; ${reason}` });
    setAside(durable, paths.journal);
    if (journal === undefined) clearJournal(paths, durable);
    else writeJournal(paths, durable, journal);
    return journal;
  }
}

/** Releases that the swap brought. A repair brings none, so all releases of its generation identify it. */
function candidateDigests({ paths }: Host, journal: Journal): ReleaseDigests {
  const brought = findNewReleases(paths, journal);
  return digestsOf(brought.length > 0 ? brought : readNamedReleases(paths, journal.to));
}

async function gatherFacts(
  host: Host,
  journal: Journal,
  examiner: GenerationExaminer,
): Promise<RecoveryFacts> {
  const current = activeGenerationNumber(host.paths);
  return {
    ...(current === undefined ? {} : { current }),
    isIntact: await examiner.isIntact(journal.to),
    ...(await findRestoreTarget(host, journal, examiner)),
    isCommitted: host.ledger.read().committedCycle === journal.cycle,
  };
}

/** A block before the third crash came from a restore that failed; this start repeats that restore. */
function isBlockedAlready({ ledger }: Host, { direction }: Journal, candidate: ReleaseDigests): boolean {
  const { blocked } = ledger.read();
  return direction === 'back' && blocked !== undefined && sameReleases(blocked.releases, candidate);
}

interface RecoveryAttempt extends InterruptedSwap, Pick<SwapUndo, 'found'> {
  readonly candidate: ReleaseDigests;
  readonly isBlocked: boolean;
}

async function performPlan(
  host: Host,
  plan: RecoveryPlan,
  attempt: RecoveryAttempt,
): Promise<CycleEnd | undefined> {
  switch (plan.action) {
    case 'none':
      return undefined;
    case 'discard':
      clearJournal(host.paths, host.durable);
      return undefined;
    case 'clear':
      removeRefusalsOf(host, findNewReleases(host.paths, attempt.journal));
      clearJournal(host.paths, host.durable);
      return undefined;
    case 'finish':
      recordCrash(host, attempt, false);
      return finishSwap(host, attempt);
    case 'undo': {
      // A full disk must not prevent the undo.
      using _ = tolerateDiskErrors(host);
      recordJournalRefusal(host, attempt.journal);
      const { crashes } = host.ledger.read();
      recordCrash(host, attempt, plan.shouldBlock);
      const undo = {
        ...attempt,
        back: plan.to,
        shouldBlock: plan.shouldBlock,
        shouldNotify: plan.shouldNotify,
      };
      const end = await undoSwap(host, undo);
      // The count was only for a crash during this undo, which is over now.
      if (attempt.isBlocked) host.ledger.write(withCrashes(host.ledger.read(), crashes));
      return end;
    }
    case 'stay':
      recordCrash(host, attempt, plan.shouldBlock);
      return keepLinkAfterSwap(host, { ...attempt, shouldBlock: plan.shouldBlock });
  }
}

/** Copies a refusal from the journal to the refusals, because the next cycle would otherwise activate the releases again. */
function recordJournalRefusal(host: Host, journal: Journal): void {
  const { refused } = journal;
  if (refused === undefined) return;
  const known = host.refusals.read().refusals;
  const releases = findNewReleases(host.paths, journal).filter(
    ({ bundle, manifest }) =>
      refused.bundles.includes(bundle) &&
      !known.some((one) => one.bundle === bundle && one.manifestDigest === manifest.digest),
  );
  if (releases.length > 0) recordRefusals(host, releases, fromJournalRefusal(refused));
}

/** Counts the crash, and blocks, before the attempt: a crash during the attempt must find both on disk. */
function recordCrash(host: Host, { journal, candidate }: RecoveryAttempt, shouldBlock: boolean): void {
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

/** Generations that recovery has read in full, by number. A later scan in the same start does not read them again. */
export type ExaminedGenerations = Map<number, ExaminedGeneration>;

interface GenerationExaminer {
  readonly isIntact: (generation: number) => Promise<boolean>;
  /** Whether retained copies can restore the same releases without the network. */
  readonly isRepairable: (generation: number) => Promise<boolean>;
}

/** @returns an examiner that reads each generation at most once and caches the result */
function createExaminer(host: Host, { signal, examined }: RecoveryOptions): GenerationExaminer {
  const known = examined ?? new Map();
  const examine = async (generation: number): Promise<ExaminedGeneration> => {
    const options = { contents: 'digests', pace: unboundedPace(signal) } as const;
    const found = known.get(generation) ?? (await examineGeneration(host, generation, options));
    known.set(generation, found);
    return found;
  };
  return {
    isIntact: async (generation) => isUsable(await examine(generation)),
    isRepairable: async (generation) => canRepairLocally(await examine(generation)),
  };
}

/**
 * Chooses the generation to which an undo moves the link. In this order:
 * 1. the generation before the swap, if it is intact or this start can repair it; an older one would revert an
 *    acknowledged release
 * 2. the last known good generation, then the previous one, then the newest, if it is intact and a rollback may use it
 * 3. the generation that the swap brought, if it is intact
 *
 * The repair of the generation before an interrupted repair is not an option, because that repair may cause the crashes.
 */
async function findRestoreTarget(
  host: Host,
  journal: Journal,
  { isIntact, isRepairable }: GenerationExaminer,
): Promise<Pick<RecoveryFacts, 'restoreTarget' | 'isTargetDamaged'>> {
  const { from, to, kind } = journal;
  if (from === undefined) return { restoreTarget: 'nothing' };
  if (await isIntact(from)) return { restoreTarget: from };
  const canRepair = kind !== 'repair' && repairNow(host) === 'yes';
  if (canRepair && (await isRepairable(from))) return { restoreTarget: from, isTargetDamaged: true };
  for (const number of listOtherGenerations(host, journal)) {
    if ((await isIntact(number)) && (await canRollBackTo(host, number))) return { restoreTarget: number };
  }
  return { restoreTarget: (await isIntact(to)) ? to : 'lost' };
}

function listOtherGenerations(host: Host, { from, to }: Journal): number[] {
  const { lastKnownGood, previous } = host.ledger.read();
  const all = listGenerations(host.paths).reverse();
  const first = [lastKnownGood, previous].filter((one) => one !== undefined && all.includes(one));
  const ordered = [...new Set([...(first as number[]), ...all])];
  return ordered.filter((one) => one !== from && one !== to);
}

/** Whether the current keys verify the releases and none is withdrawn, as for a rollback without force. */
async function canRollBackTo(host: Host, generation: number): Promise<boolean> {
  try {
    await chooseRollbackTarget(host, undefined, { generation, force: 'no' });
    return true;
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error, generation }, 'no rollback leads to this generation');
    return false;
  }
}
