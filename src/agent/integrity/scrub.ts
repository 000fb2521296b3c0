// One look over the active policy, and what follows when it is damaged: a repair, an event in log and history, and what
// status says from then on. Reading needs nobody's leave; what was found is looked at again while nothing else runs, for
// a cycle may have moved on meanwhile, and only then repaired.

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
import type { Exclusive, Hear } from '../job/exclusive.js';
import { recordEvent, recordRepair } from '../job/record.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import { examineActive } from './examine-active.js';
import { type RepairEnd, type RepairOptions, repairActive } from './repair.js';

const changeScrub = ledgerSection('scrub');

export interface LookOptions extends RepairOptions {
  readonly contents: ScanDepth;
  readonly pace: Pace;
  readonly repair: 'yes' | 'no';
  /** The person who asked; left out for the agent's own. */
  readonly by?: string;
  readonly exclusive: Exclusive;
  /** Generations that were read in full a moment ago. */
  readonly known?: ReadonlyMap<number, ExaminedGeneration>;
}

export interface Look {
  /** What was damaged; the repair may have repaired it. */
  readonly damage: readonly DamageFound[];
  readonly repair?: RepairEnd;
  readonly outcome: 'intact' | 'damaged' | 'repaired';
}

/**
 * Looks, and repairs if it may.
 * @param host asked each time: a reload may have replaced it
 * @throws WritError INTERRUPTED, DISK_*, STATE_DAMAGED when looking itself is not possible
 */
export async function scrub(host: () => Host, options: LookOptions): Promise<Look> {
  const first = await examineActive(host(), options);
  if (first === undefined) return noteNothing(host(), options);
  if (first.damage.length === 0) return note(host(), { damage: [] }, options);
  return options.exclusive(async (hear) => {
    const onEvent: Hear = (event) => {
      hear(event);
      options.onEvent?.(event);
    };
    return note(host(), await lookAgain(host(), { ...options, onEvent }), options);
  });
}

type Found = Pick<Look, 'damage' | 'repair'>;

/** Nobody else writes now: what is damaged is damaged. */
async function lookAgain(host: Host, options: LookOptions): Promise<Found> {
  if (options.repair === 'yes') {
    const repair = await repairActive(host, options);
    return repair === undefined ? { damage: [] } : { damage: repair.damage, repair };
  }
  const { signal } = options;
  // Who misses a tree, or finds another link, wants to know what else is wrong.
  const contents = options.contents === 'places' ? 'digests' : options.contents;
  const again = await examineActive(host, { contents, pace: unboundedPace(signal) });
  return { damage: again?.damage ?? [] };
}

function noteNothing(host: Host, { contents }: LookOptions): Look {
  if (contents === 'digests') writeState(host, recordEmptyScan(host.ledger.read().scrub, host.clock.nowMs()));
  return { damage: [], outcome: 'intact' };
}

function note(host: Host, found: Found, options: LookOptions): Look {
  const { damage, repair } = found;
  const before = host.ledger.read().scrub;
  const state = recordScan(before, {
    atMs: host.clock.nowMs(),
    damage,
    repair: repair === undefined ? 'none' : didSucceed(repair) ? 'succeeded' : 'failed',
    ...behindOf(repair),
  });
  // A quick look that finds nothing is no news of what only a full one has found.
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

/** A disk that cannot take it has worse to tell; what was found is in the log, and found again at the next look. */
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

interface News {
  readonly before: ScrubState | undefined;
  readonly state: ScrubState;
  readonly found: Found;
}

/** The same damage again is no news. */
function report(host: Host, { before, state, found }: News, { by }: LookOptions): void {
  const { damage, repair } = found;
  if (damage.length === 0) return;
  const reason = `damage on disk: ${formatDamageSummary(damage)}`;
  const isNews = before === undefined || JSON.stringify(before.damage) !== JSON.stringify(state.damage);
  if (repair !== undefined) {
    const isSame = !didSucceed(repair) && !isNews && by === undefined;
    if (!isSame) recordRepair(host, repair, { reason, ...(by === undefined ? {} : { by }) });
    return;
  }
  host.log.error({ damage: state.damage, found: state.found }, 'the policy on disk is damaged');
  if (!isNews) return;
  recordEvent(host, {
    ...{ trigger: 'verify', problems: [problemOf(damageError(damage))], reason },
    ...(by === undefined ? {} : { by }),
  });
}
