// Combines the results of one pull: a repair before its cycle, the cycle, and an exit rollback from an untrusted or withdrawn
// release after it. The combined result names the generation that is active in the end. Pure functions; the history has a
// separate entry for each.
import type { BundleResult, CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { exitCodeOfOutcome, isNowActive, worstOutcome } from '../../core/cycle/sync-machine.js';
import { given } from '../../core/given.js';
import { currentWorkerCodes } from '../../core/status/worker-rules.js';
import type { PolicyExit } from './policy-exit.js';

/** The exit rollback after a cycle, and the alarm that caused it. */
export interface PolicyLeft {
  readonly alarm: PolicyExit['alarm'];
  readonly result: CycleResult;
}

/**
 * @param result of the cycle, with the alarm UNTRUSTED_ACTIVE among its problems where that is why
 * @param left the exit rollback after the cycle; undefined without one
 * @returns the result after the exit rollback, which turns the alarm into a warning. After a failed exit rollback the alarm
 *   stays a problem, and the warnings contain the cause of the failure
 */
export function afterExit(result: CycleResult, left: PolicyLeft | undefined): CycleResult {
  if (left === undefined) return result;
  const { alarm, result: exit } = left;
  const durationMs = result.durationMs + exit.durationMs;
  if (!exit.changed) {
    const warnings = joinProblems(result.warnings, [...exit.warnings, ...exit.problems]);
    return { ...result, warnings, durationMs };
  }
  const warnings = joinProblems(withoutNotifiedGroups(result.warnings, exit), exit.warnings);
  const others = result.problems.filter((one) => one.code !== alarm);
  const isAnswered = result.outcome === 'degraded' && others.length === 0;
  const outcome = worstOutcome([isAnswered ? 'unchanged' : result.outcome, exit.outcome]);
  const { generation: _, ...rest } = result;
  return {
    ...rest,
    ...(exit.generation === undefined ? {} : { generation: exit.generation }),
    outcome,
    exitCode: exitCodeAfter(outcome, { last: exit, result }),
    confirmed: exit.confirmed,
    changed: exit.generation !== result.fromGeneration,
    bundles: result.bundles.map((one) => bundleAfter(one, exit)),
    workers: exit.workers,
    problems: joinProblems(others, exit.problems),
    warnings: [...warnings, leftWarning(result, left)],
    durationMs,
  };
}

/** @returns both lists, with a problem that is in both of them once */
function joinProblems(problems: readonly Problem[], later: readonly Problem[]): Problem[] {
  const isKnown = (one: Problem): boolean =>
    problems.some(({ code, message }) => code === one.code && message === one.message);
  return [...problems, ...later.filter((one) => !isKnown(one))];
}

/** @returns the warnings of the cycle, without those about workers that the exit notified, because the exit has newer ones */
function withoutNotifiedGroups(warnings: readonly Problem[], { workers }: CycleResult): Problem[] {
  const groups = new Set<unknown>(workers.map(({ group }) => group));
  return warnings.filter(({ code, facts }) => !currentWorkerCodes.has(code) || !groups.has(facts['group']));
}

/** An activation can have its own exit code; that of the last activation is used. */
function exitCodeAfter(
  outcome: CycleResult['outcome'],
  { last, result }: { readonly last: CycleResult; readonly result: CycleResult },
): number {
  if (outcome === 'activated' && last.outcome === outcome) return last.exitCode;
  return outcome === result.outcome ? result.exitCode : exitCodeOfOutcome[outcome];
}

/** A refused or unavailable release keeps its outcome; only the serial that the exit activated is added. */
function bundleAfter(one: BundleResult, exit: CycleResult): BundleResult {
  const left = exit.bundles.find(({ bundle }) => bundle === one.bundle);
  if (left === undefined || left.outcome === 'unchanged') return one;
  if (one.problem !== undefined)
    return isNowActive(left) ? { ...one, ...given({ activeSerial: left.toSerial }) } : one;
  const { fromSerial } = one;
  return { ...left, ...(fromSerial === undefined ? {} : { fromSerial }) };
}

function leftWarning(result: CycleResult, { alarm, result: exit }: PolicyLeft): Problem {
  const alarms = result.problems.filter((one) => one.code === alarm);
  const { generation, fromGeneration } = exit;
  const now = exit.bundles.map(({ bundle, toSerial }) => `${bundle} ${toSerial}`).join(', ');
  const moved = `generation ${generation} (${now}) replaced generation ${fromGeneration}`;
  const facts = { generation, left: fromGeneration };
  if (alarm === 'ACTIVE_WITHDRAWN') {
    const gone = exit.bundles.filter(({ outcome }) => outcome !== 'unchanged');
    const names = gone.map(({ bundle, fromSerial }) => `${bundle} ${fromSerial}`).join(', ');
    const hint = 'What is offered in its place was not taken: the problems say why.';
    return { code: alarm, message: `the publisher has withdrawn ${names}: ${moved}`, hint, facts };
  }
  const names = alarms.map((one) => `${one.facts['bundle']} ${one.facts['serial']}`).join(', ');
  const message = `current keys do not trust ${names}: ${moved}`;
  return { code: alarm, message, hint: alarms[0]?.hint ?? '', facts };
}

/**
 * @param result of the cycle
 * @param repair the result of the repair before the cycle; undefined without one
 * @returns the combined result, relative to the state before the repair: with a repaired generation it is not `unchanged`
 */
export function afterRepair(result: CycleResult, repair: CycleResult | undefined): CycleResult {
  if (repair === undefined) return result;
  const warnings = [...repair.warnings, ...result.warnings];
  // If the repair did not move the link, the cycle has examined the same damage again and reports it.
  if (!repair.changed) return { ...result, warnings };
  const { fromGeneration: _, ...rest } = result;
  const whole = {
    ...rest,
    ...(repair.fromGeneration === undefined ? {} : { fromGeneration: repair.fromGeneration }),
    changed: true,
    warnings,
  };
  return result.outcome === 'unchanged' ? { ...whole, ...resultOfRepair(repair, result) } : whole;
}

/** The members that the repair determines when the cycle changed nothing. */
function resultOfRepair(repair: CycleResult, result: CycleResult): Partial<CycleResult> {
  const { outcome, confirmed, workers } = repair;
  const exitCode = exitCodeAfter(outcome, { last: repair, result });
  const bundles = result.bundles.map(
    (one) => repair.bundles.find((repaired) => repaired.bundle === one.bundle) ?? one,
  );
  const problems = [...repair.problems, ...result.problems];
  return { outcome, exitCode, confirmed, bundles, workers, problems };
}
