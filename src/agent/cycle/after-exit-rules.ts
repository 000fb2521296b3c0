// What a pull says when `untrusted: rollback` left the generation that the cycle ended on: for who asked, that was one
// act, and the result names what is active behind it. Pure; the history keeps the two apart.
import type { BundleResult, CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { exitCodeOfOutcome, worstOutcome } from '../../core/cycle/sync-machine.js';

/**
 * @param result of the cycle, with the alarm UNTRUSTED_ACTIVE among its problems
 * @param exit the rollback that followed; absent when there was nothing to leave, or nowhere to go
 * @returns the result as seen behind the exit: an alarm that was answered is a warning. An exit that failed left the
 *   alarm as it was, and says in the warnings why it failed
 */
export function afterExit(result: CycleResult, exit: CycleResult | undefined): CycleResult {
  if (exit === undefined) return result;
  const durationMs = result.durationMs + exit.durationMs;
  const warnings = [...result.warnings, ...exit.warnings];
  if (!exit.changed) return { ...result, warnings: [...warnings, ...exit.problems], durationMs };
  const others = result.problems.filter((one) => one.code !== 'UNTRUSTED_ACTIVE');
  const isAnswered = result.outcome === 'degraded' && others.length === 0;
  const outcome = worstOutcome([isAnswered ? 'unchanged' : result.outcome, exit.outcome]);
  const { generation: _, ...rest } = result;
  return {
    ...rest,
    ...(exit.generation === undefined ? {} : { generation: exit.generation }),
    outcome,
    exitCode: outcome === result.outcome ? result.exitCode : exitCodeOfOutcome[outcome],
    confirmed: exit.confirmed,
    changed: exit.generation !== result.fromGeneration,
    bundles: result.bundles.map((one) => bundleAfter(one, exit)),
    workers: exit.workers,
    problems: [...others, ...exit.problems],
    warnings: [...warnings, leftWarning(result, exit)],
    durationMs,
  };
}

/** What was refused, or could not be had, stays said. */
function bundleAfter(one: BundleResult, exit: CycleResult): BundleResult {
  const left = exit.bundles.find(({ bundle }) => bundle === one.bundle);
  if (left === undefined || left.outcome === 'unchanged' || one.problem !== undefined) return one;
  const { fromSerial } = one;
  return { ...left, ...(fromSerial === undefined ? {} : { fromSerial }) };
}

function leftWarning(result: CycleResult, exit: CycleResult): Problem {
  const alarms = result.problems.filter((one) => one.code === 'UNTRUSTED_ACTIVE');
  const left = alarms.map(({ facts }) => `${facts['bundle']} ${facts['serial']}`).join(', ');
  const { generation, fromGeneration } = exit;
  return {
    code: 'UNTRUSTED_ACTIVE',
    message: `keys of today do not vouch for ${left}: generation ${generation} took the place of generation ${fromGeneration}`,
    hint: alarms[0]?.hint ?? '',
    facts: { generation, left: fromGeneration },
  };
}
