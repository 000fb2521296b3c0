// What a pull says that had to mend the policy before its cycle could begin: for who asked, that was one act.
// Pure; the history keeps the two apart.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { exitCodeOfOutcome } from '../../core/cycle/sync-machine.js';

/**
 * @param result of the cycle
 * @param repair of the same command, before it; absent when all was whole
 * @returns the result as seen from before the repair: a generation that the repair made is no `unchanged`
 */
export function afterRepair(result: CycleResult, repair: CycleResult | undefined): CycleResult {
  if (repair === undefined) return result;
  const warnings = [...repair.warnings, ...result.warnings];
  // A repair that did not move the link is said by what is wrong still, and the cycle has judged that anew.
  if (!repair.changed) return { ...result, warnings };
  const { fromGeneration: _, ...rest } = result;
  const whole = {
    ...rest,
    ...(repair.fromGeneration === undefined ? {} : { fromGeneration: repair.fromGeneration }),
    changed: true,
    warnings,
  };
  return result.outcome === 'unchanged' ? { ...whole, ...saidBy(repair, result) } : whole;
}

/** The cycle found nothing to do: how the repair ended is how the command ended. */
function saidBy(repair: CycleResult, result: CycleResult): Partial<CycleResult> {
  const { outcome, confirmed, workers } = repair;
  const bundles = result.bundles.map(
    (one) => repair.bundles.find((mended) => mended.bundle === one.bundle) ?? one,
  );
  const problems = [...repair.problems, ...result.problems];
  return { outcome, exitCode: exitCodeOfOutcome[outcome], confirmed, bundles, workers, problems };
}
