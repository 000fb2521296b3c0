// The steps of a start, for the agent and for a standalone run: recover, scan the active generation, and run loaders after
// a boot. Makes no decision itself.
import * as fs from 'node:fs';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { isWritError, toWritError, type WritError } from '../../core/errors.js';
import { chooseStartScanDepth, isRetainedCopyDamage } from '../../core/status/scrub-state.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { listEntries } from '../../platform/read-file.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { restoreSettled } from '../bake/restore-settled.js';
import { type StartOfBakes, startBakes } from '../bake/start-bakes.js';
import { damageError, unverifiedError } from '../generations/damage.js';
import { trySandbox } from '../hooks/sandbox.js';
import { noteSandbox } from '../hooks/watch-sandbox.js';
import { scrub } from '../integrity/scrub.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { exclusiveAlone } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { isLoadPending, loadAtBoot } from '../notify/boot-loaders.js';
import { noteNewlyAffected } from '../notify/membership.js';
import { isPending } from '../notify/worker-ledger.js';
import { readStatusFile } from '../report/status-file.js';
import { repairNow } from '../select/pause.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import { retryRefusalsAtStart } from '../state/refusals.js';
import { remakeReserve } from '../state/restore-memory.js';
import { completeHistory } from './complete-history.js';
import { reportNotices } from './notices.js';
import { type ExaminedGenerations, type RecoveryOptions, recoverHost } from './recover-host.js';

const changeVerified = ledgerSection('verifiedBootId');

export interface StartEnd {
  /** The end of the unfinished cycle; undefined without one. */
  readonly recovered: CycleEnd | undefined;
  /** The end of the repair, which the history contains already; undefined if none was necessary or permitted. */
  readonly repaired: CycleEnd | undefined;
  /** The damage of the active policy that is not repaired; undefined without damage. */
  readonly damage: WritError | undefined;
  /** The end of the automatic rollback; undefined if no active release failed its bake time in the last boot. */
  readonly restored: CycleEnd | undefined;
  /** State files that were rebuilt; the log and the history contain these notices already. */
  readonly notices: readonly Problem[];
  /** Why a loader is still pending; undefined if none is. */
  readonly notLoaded: Problem | undefined;
}

/**
 * Performs the start before the first cycle: repairs the state files, finishes or undoes an interrupted swap, scans the
 * active generation, and runs loaders after a boot.
 */
export async function startHost(host: Host, options: StartOptions): Promise<StartEnd> {
  const end = detectPreviousEnd(host);
  // The crash rules count an interrupted swap, so the bake time must not count it again.
  const hadJournal = fs.existsSync(host.paths.journal);
  await trySandbox(host);
  const examined: ExaminedGenerations = new Map();
  const recovered = await recoverHost(host, { ...options, examined });
  remakeReserve(host);
  completeHistory(host, recovered);
  noteSandbox(host);
  const notices = reportNotices(host);
  const bootId = readBootId();
  retryRefusalsAtStart(host, { hasBooted: host.ledger.read().verifiedBootId !== bootId });
  const { canLoad, ...verified } = await verifyActive(host, { ...options, bootId, end, examined });
  noteNewlyAffected(host);
  const wasOrderly = end === 'clean' || hadJournal;
  // Within the start, because workers that are ordered after the agent read the policy after it.
  const restored =
    verified.damage === undefined
      ? await restoreAfterFailedBake(host, { bootId, wasOrderly }, options)
      : undefined;
  const notLoaded = canLoad ? await loadAtBoot(host, options) : undefined;
  return { recovered, ...verified, restored, notices, notLoaded };
}

/** A failed rollback must not prevent the start of the agent, which tries it again later. */
async function restoreAfterFailedBake(
  host: Host,
  start: Omit<StartOfBakes, keyof StartObservation>,
  { observe }: Pick<StartOptions, 'observe'>,
): Promise<CycleEnd | undefined> {
  try {
    const observation = (await observe?.(host)) ?? { unseenGroups: [] };
    return await restoreSettled(host, await startBakes(host, { ...start, ...observation }));
  } catch (error) {
    host.log.error({ err: error }, 'a release that failed in its bake time could not be taken back');
    return undefined;
  }
}

export type StartObservation = Omit<StartOfBakes, 'bootId' | 'wasOrderly'>;

export interface StartOptions extends RecoveryOptions {
  /** Whether a later pull scans the policy when a scan is due. Omitted: false, and this start does not skip its scan. */
  readonly hasLaterScrub?: boolean;
  /**
   * For a standalone run: called before the bake times are evaluated.
   * @returns the observation of this start; bake times of releases that unseen groups use do not continue
   */
  readonly observe?: (host: Host) => Promise<StartObservation>;
}

interface Verification extends Pick<StartEnd, 'repaired' | 'damage'> {
  /** Whether loaders can run: the active trees are intact, though a retained copy may be damaged. */
  readonly canLoad: boolean;
}

interface VerificationOptions extends Pick<StartOptions, 'hasLaterScrub'> {
  readonly bootId: string;
  readonly end: 'clean' | 'unclean';
  readonly signal: AbortSignal;
  readonly examined: ExaminedGenerations;
}

/**
 * Scans the active trees before the agent is ready, and repairs damage from local copies: no start waits for the network.
 * After a boot or an unclean end the trees are read in full, because a zero exit of `sync -f` can hide a write error that
 * another process consumed. After a clean end the scan compares names, types, sizes and modes. A pull soon after a full
 * scan compares less.
 */
async function verifyActive(
  host: Host,
  { bootId, end, signal, examined, hasLaterScrub }: VerificationOptions,
): Promise<Verification> {
  const { scrub: state, verifiedBootId } = host.ledger.read();
  const contents = chooseStartScanDepth({
    ended: end,
    isReadSinceBoot: verifiedBootId === bootId,
    hasLaterScrub: hasLaterScrub === true,
    isNotificationPending: isNotificationPending(host, bootId),
    state,
    everyMs: host.config.scrub.everyMs,
    nowMs: host.clock.nowMs(),
  });
  try {
    const scan = await scrub(() => host, {
      cycle: newCycleId(),
      signal,
      contents,
      pace: unboundedPace(signal),
      repair: repairNow(host),
      download: 'no',
      exclusive: exclusiveAlone,
      known: examined,
    });
    const repaired = scan.repair;
    if (scan.outcome === 'damaged') {
      const canLoad = scan.damage.every(isRetainedCopyDamage);
      return { repaired, damage: damageError(scan.damage), canLoad };
    }
    recordVerification(host, bootId);
    return { repaired, damage: undefined, canLoad: true };
  } catch (error) {
    host.log.error({ err: error }, 'the active generation could not be verified');
    return { repaired: undefined, damage: unverifiedError(toWritError(error)), canLoad: false };
  }
}

/** A worker or loader that must still load the policy requires a scan, because a file of the tree can be missing. */
function isNotificationPending(host: Host, bootId: string): boolean {
  const { workers } = host.ledger.read();
  return isLoadPending(host, bootId) || Object.values(workers).some(isPending);
}

/** A write error is only logged, because it does not change the scan's result: the next start reads the trees again. */
function recordVerification(host: Host, bootId: string): void {
  const ledger = host.ledger.read();
  if (ledger.verifiedBootId === bootId) return;
  try {
    host.ledger.write(changeVerified(ledger, { verifiedBootId: bootId }));
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'the verification of the active generation could not be recorded');
  }
}

/** A crash leaves a staging area, a journal, a status without `stop`, or an unreadable status. */
function detectPreviousEnd(host: Host): 'clean' | 'unclean' {
  const { paths } = host;
  const left = listEntries(paths.staging).length > 0 || fs.existsSync(paths.journal);
  const status = readStatusFile(paths);
  const isOver = status === undefined ? !fs.existsSync(paths.status) : status.agent === 'stop';
  return left || !isOver ? 'unclean' : 'clean';
}
