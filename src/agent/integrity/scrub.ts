// Scans the active policy once. Damage leads to a repair, an event in log and history, and a problem in the status. The first scan runs
// without the job lock. Damage is confirmed by a second scan with the lock before its repair, because a cycle may have changed the
// active generation meanwhile.

import { problemOf } from '../../core/cycle/problem.js';
import { isWritError } from '../../core/errors.js';
import {
  type DamageFound,
  formatDamageSummary,
  recordEmptyScan,
  recordScan,
  type ScanDepth,
  type ScrubState,
} from '../../core/status/scrub-state.js';
import { type Pace, unboundedPace } from '../../platform/time/rate-limit.js';
import { damageError } from '../generations/damage.js';
import type { ExaminedGeneration } from '../generations/examine.js';
import { noteLinks } from '../generations/generation-notes.js';
import type { CycleEventListener, Exclusive } from '../job/exclusive.js';
import { recordEvent, recordRepair } from '../job/record.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import { examineActive } from './examine-active.js';
import { type RepairEnd, type RepairOptions, repairActive } from './repair.js';

const changeScrub = ledgerSection('scrub');

export interface ScrubOptions extends RepairOptions {
  readonly contents: ScanDepth;
  readonly pace: Pace;
  readonly repair: 'yes' | 'no';
  /** The operator who requested the scan; left out for a scan of the agent. */
  readonly by?: string;
  readonly exclusive: Exclusive;
  /** Generations that were just read in full. */
  readonly known?: ReadonlyMap<number, ExaminedGeneration>;
}

export interface ScrubResult {
  /** The found damage, whether or not it was repaired. */
  readonly damage: readonly DamageFound[];
  readonly repair?: RepairEnd;
  readonly outcome: 'intact' | 'damaged' | 'repaired';
}

/**
 * Scans, and repairs if `repair` permits it.
 * @param host called at each use, because a reload may replace the host
 * @throws WritError INTERRUPTED, DISK_*, STATE_DAMAGED if the scan itself is impossible
 */
export async function scrub(host: () => Host, options: ScrubOptions): Promise<ScrubResult> {
  const first = await examineActive(host(), options);
  if (first === undefined) return recordEmptyPolicy(host(), options);
  if (first.damage.length === 0) return recordResult(host(), { damage: [] }, options);
  return options.exclusive(async (reportEvent) => {
    const onEvent: CycleEventListener = (event) => {
      reportEvent(event);
      options.onEvent?.(event);
    };
    return recordResult(host(), await confirmOrRepair(host(), { ...options, onEvent }), options);
  });
}

type Found = Pick<ScrubResult, 'damage' | 'repair'>;

/** Runs with the job lock: no other job writes now, so damage of this scan is real. */
async function confirmOrRepair(host: Host, options: ScrubOptions): Promise<Found> {
  if (options.repair === 'yes') {
    const repair = await repairActive(host, options);
    return repair === undefined ? { damage: [] } : { damage: repair.damage, repair };
  }
  const { signal } = options;
  // After a missing tree or a wrong link, a full scan finds all other damage too.
  const contents = options.contents === 'places' ? 'digests' : options.contents;
  const again = await examineActive(host, { contents, pace: unboundedPace(signal) });
  return { damage: again?.damage ?? [] };
}

function recordEmptyPolicy(host: Host, { contents }: ScrubOptions): ScrubResult {
  if (contents === 'digests') writeState(host, recordEmptyScan(host.ledger.read().scrub, host.clock.nowMs()));
  return { damage: [], outcome: 'intact' };
}

function recordResult(host: Host, found: Found, options: ScrubOptions): ScrubResult {
  const { damage, repair } = found;
  const before = host.ledger.read().scrub;
  const state = recordScan(before, {
    atMs: host.clock.nowMs(),
    damage,
    repair: repair === undefined ? 'none' : didSucceed(repair) ? 'succeeded' : 'failed',
    ...behindOf(repair),
  });
  // A quick scan without damage does not disprove the damage of a full scan.
  if (damage.length > 0 || options.contents === 'digests') writeState(host, state);
  report(host, { before, state, found }, options);
  return { ...found, outcome: state.outcome };
}

function didSucceed({ result }: RepairEnd): boolean {
  return ['activated', 'degraded', 'unchanged'].includes(result.outcome);
}

function behindOf(repair: RepairEnd | undefined): Pick<ScrubState, 'behind'> {
  const problem = repair?.result.problems.find((one) => one.code === 'REPAIRED_BY_PREVIOUS');
  const { generation } = repair?.result ?? {};
  if (problem === undefined || generation === undefined) return {};
  return { behind: { generation, text: problem.message.slice(0, 1000) } };
}

/** A failed write is only logged: the damage is in the log too, and the next scan finds it again. */
function writeState(host: Host, state: ScrubState): void {
  try {
    const ledger = host.ledger.read();
    const { settled } = ledger;
    const noted = settled === undefined || state.found > 0 ? ledger : noteLinks(host.paths, ledger, settled);
    host.ledger.write(changeScrub(noted, { scrub: state }));
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'the end of a scan could not be recorded');
  }
}

interface ScanComparison {
  readonly before: ScrubState | undefined;
  readonly state: ScrubState;
  readonly found: Found;
}

/** Records an event, unless the damage is the same as before. */
function report(host: Host, { before, state, found }: ScanComparison, { by }: ScrubOptions): void {
  const { damage, repair } = found;
  if (damage.length === 0) return;
  const reason = `damage on disk: ${formatDamageSummary(damage)}`;
  const isNew = before === undefined || JSON.stringify(before.damage) !== JSON.stringify(state.damage);
  if (repair !== undefined) {
    const isSame = !didSucceed(repair) && !isNew && by === undefined;
    if (!isSame) recordRepair(host, repair, { reason, ...(by === undefined ? {} : { by }) });
    return;
  }
  host.log.error({ damage: state.damage, found: state.found }, 'the policy on disk is damaged');
  if (!isNew) return;
  recordEvent(host, {
    ...{ trigger: 'verify', problems: [problemOf(damageError(damage))], reason },
    ...(by === undefined ? {} : { by }),
  });
}
