// The order of a start, for the agent and for a command without one: recover, make sure that the active generation is
// what its records say, run the loaders of a new boot, then be ready. Decides nothing itself.
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
import { lookForSandbox } from '../hooks/sandbox.js';
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
import { type Examined, type RecoveryOptions, recoverHost } from './recover-host.js';

const changeVerified = ledgerSection('verifiedBootId');

export interface Started {
  /** The end of the unfinished cycle, if there was one. */
  readonly recovered: CycleEnd | undefined;
  /** The end of the repair, if one was needed and allowed; it is in the history already. */
  readonly repaired: CycleEnd | undefined;
  /** What is wrong with the active policy still. */
  readonly damage: WritError | undefined;
  /** The end of the restore, if an active release failed its bake time by the way the host booted. */
  readonly restored: CycleEnd | undefined;
  /** What was repaired in the state directory: said in log and history already. */
  readonly notices: readonly Problem[];
  /** Why a loader is still pending. */
  readonly notLoaded: Problem | undefined;
}

/**
 * All that a start does before the first cycle, for the agent and for a command without one: repair the state files,
 * finish or undo what a crash left, make sure that the active generation is complete, and run the loaders of a new boot.
 */
export async function startHost(host: Host, options: StartOptions): Promise<Started> {
  const end = howItEnded(host);
  // A swap that was cut short is judged by the crash rules, and is not counted twice.
  const hadJournal = fs.existsSync(host.paths.journal);
  await lookForSandbox(host);
  const examined: Examined = new Map();
  const recovered = await recoverHost(host, { ...options, examined });
  remakeReserve(host);
  completeHistory(host, recovered);
  noteSandbox(host);
  const notices = reportNotices(host);
  const bootId = readBootId();
  retryRefusalsAtStart(host, { hasBooted: host.ledger.read().verifiedBootId !== bootId });
  const { mayLoad, ...verified } = await verifyActive(host, { ...options, bootId, end, examined });
  noteNewlyAffected(host);
  const wasOrderly = end === 'clean' || hadJournal;
  // Before workers that are ordered after the agent read the policy.
  const restored =
    verified.damage === undefined ? await restoreFailed(host, { bootId, wasOrderly }, options) : undefined;
  const notLoaded = mayLoad === 'yes' ? await loadAtBoot(host, options) : undefined;
  return { recovered, ...verified, restored, notices, notLoaded };
}

/** A restore that fails must not keep the agent from starting: the agent tries it again. */
async function restoreFailed(
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
  /** Whether a later pull scrubs the policy when it is needed. Left out: false, and this start skips no scan. */
  readonly hasLaterScrub?: boolean;
  /**
   * Of a command without an agent: called before the bake times are judged.
   * @returns what this start observes; no bake time passes for what unseen groups use
   */
  readonly observe?: (host: Host) => Promise<StartObservation>;
}

interface Verified extends Pick<Started, 'repaired' | 'damage'> {
  /** Loaders run on a whole tree, also when a copy that is kept beside it is damaged. */
  readonly mayLoad: 'yes' | 'no';
}

interface Verify extends Pick<StartOptions, 'hasLaterScrub'> {
  readonly bootId: string;
  readonly end: 'clean' | 'unclean';
  readonly signal: AbortSignal;
  readonly examined: Examined;
}

/**
 * A zero exit of `sync -f` can hide an error that another process consumed: after a boot or an unclean end the
 * active trees are read in full before the agent is ready; after a clean one, names, types, sizes and modes do, and of a
 * pull that a full look was not long before, less. What is damaged is repaired from what this host has: no start waits for a
 * network.
 */
async function verifyActive(
  host: Host,
  { bootId, end, signal, examined, hasLaterScrub }: Verify,
): Promise<Verified> {
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
    const look = await scrub(() => host, {
      cycle: newCycleId(),
      signal,
      contents,
      pace: unboundedPace(signal),
      repair: repairNow(host),
      download: 'no',
      exclusive: exclusiveAlone,
      known: examined,
    });
    const repaired = look.repair;
    if (look.outcome === 'damaged') {
      const mayLoad = look.damage.every(isRetainedCopyDamage) ? 'yes' : 'no';
      return { repaired, damage: damageError(look.damage), mayLoad };
    }
    noteVerified(host, bootId);
    return { repaired, damage: undefined, mayLoad: 'yes' };
  } catch (error) {
    host.log.error({ err: error }, 'the active generation could not be verified');
    return { repaired: undefined, damage: unverifiedError(toWritError(error)), mayLoad: 'no' };
  }
}

/** A worker or loader that must still load the policy requires a scan, because a file of the tree can be missing. */
function isNotificationPending(host: Host, bootId: string): boolean {
  const { workers } = host.ledger.read();
  return isLoadPending(host, bootId) || Object.values(workers).some(isPending);
}

/** A disk that cannot take the note says nothing against what was read: the next start reads all of it again. */
function noteVerified(host: Host, bootId: string): void {
  const ledger = host.ledger.read();
  if (ledger.verifiedBootId === bootId) return;
  try {
    host.ledger.write(changeVerified(ledger, { verifiedBootId: bootId }));
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'the verification of the active generation could not be recorded');
  }
}

/** A crash leaves a staging area, a journal, or a status that never came to `stop`, or cannot be read. */
function howItEnded(host: Host): 'clean' | 'unclean' {
  const { paths } = host;
  const left = listEntries(paths.staging).length > 0 || fs.existsSync(paths.journal);
  const status = readStatusFile(paths);
  const isOver = status === undefined ? !fs.existsSync(paths.status) : status.agent === 'stop';
  return left || !isOver ? 'unclean' : 'clean';
}
