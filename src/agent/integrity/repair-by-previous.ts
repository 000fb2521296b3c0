// The last fallback of a repair: an older generation that is complete, trusted and not withdrawn replaces the damaged one. The damaged
// releases are not held, so a cycle activates them again as soon as they are available.
import type { BundleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError, WritError } from '../../core/errors.js';
import { activate } from '../activation/activate.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import { chooseRollbackTarget } from '../generations/rollback-target.js';
import { touchTrees } from '../generations/touch-trees.js';
import { bundleBefore, bundleMoved, type MoveResult } from '../job/cycle-result.js';
import { type CycleProgress, skipSteps } from '../job/progress.js';
import type { Host } from '../state/host.js';
import { parseTreeName } from '../state/paths.js';
import type { ExaminedActive } from './examine-active.js';
import { moveToRepaired } from './repair-plan.js';

export interface FallbackInput {
  readonly host: Host;
  /** Its current step is the one after `stage`. */
  readonly progress: CycleProgress;
  readonly active: ExaminedActive;
  /** Why the damaged releases cannot be staged again. */
  readonly failures: readonly Problem[];
  readonly staging: string;
  readonly signal: AbortSignal;
}

export interface FallbackResult {
  readonly moved: MoveResult;
  readonly bundles: readonly BundleResult[];
  readonly problem: Problem;
}

/** Activates the fallback generation. @throws WritError REPAIR_FAILED without such a generation */
export async function fallBackToIntactGeneration(back: FallbackInput): Promise<FallbackResult> {
  const { host, progress, active, failures, staging, signal } = back;
  const target = await choose(back);
  await skipSteps(progress, ['verify', 'check', 'canary', 'flush']);
  const to = target.generation.number;
  await makeNewer(host, { comingBack: to, inUse: active.current });
  const replaced = [...target.bundles.keys()];
  const moved = await activate(
    host,
    progress,
    moveToRepaired(host, { active, to, replaced, staging, signal }),
  );
  const error = new WritError(
    'REPAIRED_BY_PREVIOUS',
    `generation ${to} replaced the damaged generation ${active.wanted.generation}: ${reasons(failures)}`,
    { facts: { generation: to, damaged: active.wanted.generation } },
  );
  return { moved, bundles: resultsOf(active, target, moved), problem: problemOf(error) };
}

async function choose({ host, active, failures }: FallbackInput): Promise<ActivePolicy> {
  const { generation } = active.wanted;
  const damaged = { number: generation, path: `${host.paths.generations}/${generation}`, entries: [] };
  try {
    return await chooseRollbackTarget(host, { generation: damaged, bundles: new Map() }, { force: 'no' });
  } catch (error) {
    if (!isWritError(error)) throw error;
    const text = `generation ${generation} is damaged and cannot be repaired: ${reasons(failures)}; no older one can replace it: ${error.message}`;
    const facts = { because: failures.map(({ code }) => code), previous: error.code };
    throw new WritError('REPAIR_FAILED', text, { facts, cause: error });
  }
}

function reasons(failures: readonly Problem[]): string {
  return failures.map(({ message }) => message).join('; ');
}

/** Retries without the damaged generation, because its links may be unreadable. */
async function makeNewer(host: Host, move: Parameters<typeof touchTrees>[1]): Promise<void> {
  try {
    await touchTrees(host, move);
  } catch (error) {
    if (!isWritError(error)) throw error;
    await touchTrees(host, { ...move, inUse: undefined });
  }
}

function resultsOf(active: ExaminedActive, target: ActivePolicy, moved: MoveResult): BundleResult[] {
  return [...target.bundles].map(([bundle, { entry, record }]) => {
    const before = active.wanted.bundles.find((one) => one.bundle === bundle);
    const fromSerial = parseTreeName(before?.treeDirectory ?? '')?.serial;
    const result = bundleMoved(bundleBefore(record.release, fromSerial), moved);
    return before?.treeDirectory === entry.treeDirectory ? { ...result, outcome: 'unchanged' } : result;
  });
}
