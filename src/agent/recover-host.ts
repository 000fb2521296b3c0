// What a start does before anything else: sweep leftovers, and finish or undo the swap that a crash left. Performs
// the plan of core/recovery; decides nothing about trust.
import { toWritError, WritError } from '../core/errors.js';
import { type Journal, planRecovery } from '../core/recovery.js';
import type { ReleaseInfo } from '../core/release.js';
import { finishMove, type Move, type MoveResult, restore } from './activate.js';
import { type ActiveBundle, bundlesOf } from './active-bundles.js';
import { type CycleStory, openStory, problemOf } from './cycle-story.js';
import { emptyFindings, finishCycle } from './finish-cycle.js';
import { activeGenerationNumber, listGenerations, readGeneration } from './generations.js';
import type { Host } from './host.js';
import { clearJournal, readJournal, writeJournal } from './journal.js';
import { rememberReleases } from './remember-refusals.js';
import { openStagingArea } from './staging-area.js';
import { sweepLeftovers } from './sweep-leftovers.js';
import type { CycleEnd } from './sync-cycle.js';
import type { TellTarget } from './tell-steps.js';

export interface RecoveryOptions {
  readonly cycle: string;
  readonly signal: AbortSignal;
}

/**
 * Recovers. Idempotent: a crash in it is recovered by the next start.
 * @returns the end of the unfinished cycle, or undefined when there was none
 * @throws WritError STATE_DAMAGED, DISK_*
 */
export async function recoverHost(host: Host, options: RecoveryOptions): Promise<CycleEnd | undefined> {
  const { paths, durable } = host;
  sweepLeftovers(host);
  const journal = readJournal(paths);
  const current = activeGenerationNumber(paths);
  const facts = { ...(current === undefined ? {} : { current }), readable: readable(host, journal) };
  const plan = planRecovery(journal, facts);
  host.log.info({ plan, journal }, 'recovery');
  if (journal === undefined || plan.action === 'none') return undefined;
  if (plan.action === 'discard') {
    clearJournal(paths, durable);
    return undefined;
  }
  // Counted before it is tried: a crash in the attempt must find it counted.
  writeJournal(paths, durable, { ...journal, attempts: journal.attempts + 1 });
  return finishOrUndo(host, journal, {
    ...options,
    action: plan.action,
    block: plan.action === 'undo' ? plan.block : 'no',
  });
}

interface Attempt extends RecoveryOptions {
  readonly action: 'finish' | 'undo';
  readonly block: 'yes' | 'no';
}

async function finishOrUndo(host: Host, journal: Journal, attempt: Attempt): Promise<CycleEnd> {
  const firstStep = attempt.action === 'finish' ? 'load' : 'swap';
  const story = openStory({ ...attempt, trigger: 'recovery', clock: host.clock, firstStep });
  const area = openStagingArea(host.paths, host.durable, story.cycle);
  const findings = emptyFindings(activeGenerationNumber(host.paths));
  const move = moveOf(host, journal, { staging: area.path(), signal: attempt.signal });
  try {
    const result =
      attempt.action === 'finish'
        ? await finishMove(host, story, move)
        : await undo(host, story, { move, journal, block: attempt.block });
    findings.moves.push(result);
  } finally {
    area.remove(host.log);
  }
  return { result: finishCycle(host, story, findings), story };
}

interface Undo {
  readonly move: Move;
  readonly journal: Journal;
  readonly block: 'yes' | 'no';
}

/** With the link back, workers that say no must not keep the agent from starting: that is a block, said loudly. */
async function undo(host: Host, story: CycleStory, { move, journal, block }: Undo): Promise<MoveResult> {
  const outcome = block === 'yes' ? 'blocked' : 'failed';
  const why = block === 'yes' ? blockAfterCrashes(host, journal) : interrupted(journal);
  const result = { outcome, confirmed: false, problems: [problemOf(why)], warnings: [] } as const;
  try {
    return { ...result, workers: await story.restore(() => restore(host, story, move)) };
  } catch (error) {
    if (activeGenerationNumber(host.paths) !== journal.from) throw error;
    clearJournal(host.paths, host.durable);
    const problem = new WritError(
      'ACTIVATION_BLOCKED',
      `generation ${journal.from} is back, but: ${toWritError(error).message}`,
    );
    return { ...result, outcome: 'blocked', workers: [], problems: [problemOf(problem), problemOf(error)] };
  }
}

function moveOf(host: Host, journal: Journal, options: Pick<Move, 'staging' | 'signal'>): Move {
  const from = journal.from === undefined ? undefined : targetOf(host, journal.from);
  const releases = releasesOf(host, journal);
  return {
    ...options,
    kind: journal.kind,
    ...(from ? { from } : {}),
    to: targetOf(host, journal.to),
    // Nobody knows who had been told when the crash came: everybody is told again.
    groups: host.groups,
    releases,
    attempts: journal.attempts + 1,
    ledger: (ledger) => ledger,
    ...(journal.kind === 'update'
      ? { onRefused: (error, groups) => rememberRefused(host, releases, error, groups) }
      : {}),
  };
}

function targetOf(host: Host, generation: number): TellTarget {
  return { generation, path: `${host.paths.generations}/${generation}` };
}

function readable(host: Host, journal: Journal | undefined): number[] {
  const known = listGenerations(host.paths);
  return [journal?.from, journal?.to].filter((one): one is number => {
    return one !== undefined && known.includes(one) && (bundlesIn(host, one)?.size ?? 0) > 0;
  });
}

/** @returns undefined for a generation that is not whole: that is a fact for the plan, no reason to stop */
function bundlesIn(host: Host, generation: number): ReadonlyMap<string, ActiveBundle> | undefined {
  try {
    return bundlesOf(host.paths, readGeneration(host.paths, generation));
  } catch (error) {
    host.log.warn({ err: error, generation }, 'a generation cannot be read');
    return undefined;
  }
}

/** The releases that the journal's swap brought: what its generation has and the one before has not. */
function releasesOf(host: Host, journal: Journal): ReleaseInfo[] {
  const before = journal.from === undefined ? undefined : bundlesIn(host, journal.from);
  const after = bundlesIn(host, journal.to) ?? new Map<string, ActiveBundle>();
  return [...after.values()]
    .map((one) => one.record.release)
    .filter(
      ({ bundle, manifest }) => before?.get(bundle)?.record.release.manifest.digest !== manifest.digest,
    );
}

/** As in the cycle that crashed: what a worker refuses is remembered before the link goes back. */
function rememberRefused(
  host: Host,
  releases: readonly ReleaseInfo[],
  error: WritError,
  groups: readonly string[],
): void {
  const used = host.groups
    .filter((one) => groups.includes(one.config.name))
    .flatMap((one) => one.config.uses);
  rememberReleases(
    host,
    releases.filter((one) => used.includes(one.bundle)),
    error,
  );
}

function interrupted({ from, to }: Journal): WritError {
  const text = `the move to generation ${to} was cut short; generation ${from ?? 'none'} is back`;
  return new WritError('INTERRUPTED', text, { facts: { from, to }, hint: 'The next poll tries it again.' });
}

function blockAfterCrashes(host: Host, journal: Journal): WritError {
  const manifestDigests = releasesOf(host, journal).map((one) => one.manifest.digest);
  const reason = `generation ${journal.to} did not get to its end in ${journal.attempts + 1} starts`;
  host.ledger.write({
    ...host.ledger.read(),
    blocked: { reason, atMs: host.clock.nowMs(), manifestDigests },
  });
  return new WritError('ACTIVATION_BLOCKED', reason, { facts: { from: journal.from, to: journal.to } });
}
