// What a pull says of acts that were one for who asked: a repair before its cycle, and the exit from an
// untrusted or withdrawn policy after it, with the result named that is active in the end. Pure; the history keeps them apart.
import type { BundleResult, CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { exitCodeOfOutcome, isNowActive, worstOutcome } from '../../core/cycle/sync-machine.js';
import { given } from '../../core/given.js';
import { currentWorkerCodes } from '../../core/status/worker-rules.js';
import type { PolicyExit } from './policy-exit.js';

/** The rollback after a cycle, and what was wrong with the policy that it left. */
export interface PolicyLeft {
  readonly alarm: PolicyExit['alarm'];
  readonly result: CycleResult;
}

/**
 * @param result of the cycle, with the alarm UNTRUSTED_ACTIVE among its problems where that is why
 * @param left the rollback that followed; absent when there was nothing to leave, or nowhere to go
 * @returns the result as seen behind the exit: an alarm that was answered is a warning. An exit that failed left the
 *   alarm as it was, and says in the warnings why it failed
 */
export function afterExit(result: CycleResult, left: PolicyLeft | undefined): CycleResult {
  if (left === undefined) return result;
  const { alarm, result: exit } = left;
  const durationMs = result.durationMs + exit.durationMs;
  if (!exit.changed) {
    const warnings = joined(result.warnings, [...exit.warnings, ...exit.problems]);
    return { ...result, warnings, durationMs };
  }
  const warnings = joined(notJudgedAgain(result.warnings, exit), exit.warnings);
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
    problems: joined(others, exit.problems),
    warnings: [...warnings, leftWarning(result, left)],
    durationMs,
  };
}

/** @returns both lists, with a problem that is in both of them once */
function joined(problems: readonly Problem[], later: readonly Problem[]): Problem[] {
  const isKnown = (one: Problem): boolean =>
    problems.some(({ code, message }) => code === one.code && message === one.message);
  return [...problems, ...later.filter((one) => !isKnown(one))];
}

/** @returns the warnings of the cycle without those about workers that the exit notified: its own warnings are newer */
function notJudgedAgain(warnings: readonly Problem[], { workers }: CycleResult): Problem[] {
  const groups = new Set<unknown>(workers.map(({ group }) => group));
  return warnings.filter(({ code, facts }) => !currentWorkerCodes.has(code) || !groups.has(facts['group']));
}

/** An activation may have an exit code of its own: that of the last one counts. */
function exitCodeAfter(
  outcome: CycleResult['outcome'],
  { last, result }: { readonly last: CycleResult; readonly result: CycleResult },
): number {
  if (outcome === 'activated' && last.outcome === outcome) return last.exitCode;
  return outcome === result.outcome ? result.exitCode : exitCodeOfOutcome[outcome];
}

/** The outcome of a release that was refused or not available stays, beside the serial that the exit activated. */
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
 * @param repair of the same command, before it; absent when all was complete
 * @returns the result as seen from before the repair: a generation that the repair made is no `unchanged`
 */
export function afterRepair(result: CycleResult, repair: CycleResult | undefined): CycleResult {
  if (repair === undefined) return result;
  const warnings = [...repair.warnings, ...result.warnings];
  // A repair that did not move the link is said by what is wrong still, and the cycle has judged that again.
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
  const exitCode = exitCodeAfter(outcome, { last: repair, result });
  const bundles = result.bundles.map(
    (one) => repair.bundles.find((mended) => mended.bundle === one.bundle) ?? one,
  );
  const problems = [...repair.problems, ...result.problems];
  return { outcome, exitCode, confirmed, bundles, workers, problems };
}
