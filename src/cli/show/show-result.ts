// The last block of `writ pull` and `writ rollback`: the outcome in capitals, what happens to the active policy,
// and the next command. Pure: a result in, lines out. Each line comes from the result only.
import type { BundleResult, CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemText } from '../../core/cycle/problem-text.js';
import { isNowActive, type Outcome } from '../../core/cycle/sync-machine.js';
import { type ErrorCode, errorCodes, isImplicitRefusal } from '../../core/error-codes.js';
import type { Bounded } from '../../core/protocol/control-protocol.js';
import { workerCodes } from '../../core/status/worker-rules.js';
import {
  counted,
  indented,
  isRefusing,
  minuteTime,
  missedText,
  seconds,
  truncatedLines,
} from './show-text.js';

export interface Block {
  readonly lines: readonly string[];
  /** A command to paste. */
  readonly next?: string | undefined;
  /** The command that reverts the move; and the code in the first line, which has a page. */
  readonly undo?: string | undefined;
  readonly docs?: ErrorCode | undefined;
}

const maxDetailLines = 20;
const maxOutputLines = 12;

/** @returns lines with warnings and what was cut; next and undo of the outcome; docs: the worst code if exitCode is not 0 */
export function showResult(result: Bounded<CycleResult>): Block {
  const block = blocks[result.outcome](result);
  const others = result.warnings.filter((one) => !isOfFleet(one));
  const warnings = others.map((one) => `  warning [${one.code}] ${firstLine(one.message)}`);
  const lines = [...block.lines, ...warnings, ...truncatedLines(result)];
  const code = result.exitCode === 0 ? undefined : worstProblem(result)?.code;
  return code === undefined ? { ...block, lines } : { ...block, lines, docs: code };
}

const blocks: Readonly<Record<Outcome, (result: CycleResult) => Block>> = {
  unchanged: showUnchanged,
  activated: showActivated,
  degraded: showDegraded,
  rejected: showRejected,
  'rolled-back': showRolledBack,
  failed: (result) => {
    const [first] = result.problems;
    const isBusy = first !== undefined && errorCodes[first.code].kind === 'busy';
    return showStopped(result, isBusy ? 'BUSY' : 'FAILED', 'writ status');
  },
  deferred: (result) => {
    // Omit `writ resume` when a rollback holds the release, because it would undo the operator's request.
    const isPaused = result.problems.some(({ code }) => code === 'ACTIVATION_PAUSED');
    return showStopped(result, 'DEFERRED', isPaused ? 'writ resume' : 'writ status');
  },
  // Name `writ history` and not `writ resume`, because the operator must find the cause first.
  blocked: (result) => showStopped(result, 'BLOCKED', 'writ history'),
};

function showUnchanged(result: CycleResult): Block {
  const { generation, confirmed, problems } = result;
  const isPlain = generation === undefined || confirmed || hasNoWorkerGroup(result);
  const word = isPlain ? 'UNCHANGED' : 'UNCHANGED (unconfirmed)';
  return { lines: [`${word} ${activeText(result)}`, ...notifiedNow(result), ...problems.map(problemLine)] };
}

const maxNamesOfWorkers = 5;

/** The pending workers that a cycle without a new release notified. */
function notifiedNow({ workers }: CycleResult): string[] {
  const reached = workers.filter((one) => one.state !== 'unreachable');
  if (reached.length === 0) return [];
  const names = reached.slice(0, maxNamesOfWorkers).map((one) => `${one.group}/${one.worker} (${one.state})`);
  const more = reached.length > names.length ? `, and ${reached.length - names.length} more` : '';
  return [`  pending workers were notified: ${names.join(', ')}${more}`];
}

function showActivated(result: CycleResult): Block {
  if (result.type === 'rollback.result') return showBack(result);
  const { generation, durationMs, confirmed } = result;
  const hasNoWorkers = hasNoWorkerGroup(result);
  const label = confirmed || hasNoWorkers ? 'ACTIVATED' : 'ACTIVATED (unconfirmed)';
  const moved = withOutcome(result, 'activated');
  const what = releases(moved.length > 0 ? moved : result.bundles);
  const first = `${label} generation ${generation}${what === '' ? '' : ` (${what})`} in ${seconds(durationMs)}`;
  if (confirmed) return { lines: [first] };
  if (hasNoWorkers) return { lines: [first, '  No worker is configured: nothing to confirm.'] };
  const notified = result.workers.filter((worker) => worker.state === 'notified').length;
  const workersText =
    notified === 0
      ? 'Workers without changes were notified earlier'
      : `${counted(notified, 'worker')} notified`;
  return {
    lines: [first, `  ${workersText}; a probe would prove which generation they use.`],
    next: 'writ status',
  };
}

/** A problem of the fleet reports is printed on stderr, because it is no part of the cycle. */
export function isOfFleet({ code }: { readonly code: string }): boolean {
  return code.startsWith('FLEET_');
}

/** A host without worker groups: each unconfirmed group would have workers or a problem. */
function hasNoWorkerGroup({ confirmed, workers, problems, warnings }: CycleResult): boolean {
  return (
    !confirmed &&
    workers.length === 0 &&
    ![...problems, ...warnings].some(({ code }) => workerCodes.has(code))
  );
}

function showBack(result: CycleResult): Block {
  const { generation, fromGeneration, durationMs, confirmed } = result;
  const word = confirmed || hasNoWorkerGroup(result) ? 'ACTIVATED' : 'ACTIVATED (unconfirmed)';
  const left = result.bundles.filter(
    (one) => one.fromSerial !== undefined && one.fromSerial !== one.toSerial,
  );
  const held = left.map((one) => `${one.bundle} ${one.fromSerial}`).join(', ');
  return {
    lines: [
      `${word} generation ${generation} (${releases(result.bundles)}) again in ${seconds(durationMs)}; it was ${fromGeneration ?? 'none'}`,
      ...(held === ''
        ? []
        : [
            `  ${held} held: no poll activates it until there is a newer serial; \`writ pause\` keeps newer ones out.`,
          ]),
    ],
    ...undoOf(left, fromGeneration),
  };
}

/** Names `writ resume` only when it reactivates the release: not when another release is offered, or this one was refused. */
function undoOf(left: readonly BundleResult[], fromGeneration: number | undefined): Pick<Block, 'undo'> {
  if (left.some(({ resumable }) => resumable)) return { undo: 'writ resume' };
  return fromGeneration === undefined ? {} : { undo: `writ rollback ${fromGeneration}` };
}

function showDegraded(result: CycleResult): Block {
  const missed = result.workers.filter(({ state }) => state === 'unreachable' || state === 'refused');
  const workers = missed.flatMap((worker) => indented(`${worker.worker}: ${worker.text}`, '  ', 3));
  const other = result.problems.filter(({ facts }) => !missed.some((one) => one.worker === facts['worker']));
  return {
    lines: [
      `DEGRADED  ${activeText(result)}${missedText(result.workers)}${codeText(result)}`,
      ...workers,
      ...other.flatMap((one) => indented(one.message, '  ', 3)),
      ...(missed.every(isRefusing)
        ? []
        : ['  A worker that runs and was not notified keeps its old policy; it is notified again.']),
    ],
    next: 'writ status',
  };
}

function showRejected(result: CycleResult): Block {
  const refused = withOutcome(result, 'rejected');
  const remembered = refused.length > 0 && refused.every((one) => one.remembered === true);
  const details = refused.flatMap((one) =>
    one.problem === undefined ? [] : indented(problemText(one.problem, maxOutputLines), '  ', maxDetailLines),
  );
  // Another bundle may have failed for a reason of its own.
  const others = result.bundles.flatMap(({ outcome, problem }) =>
    outcome === 'rejected' || problem === undefined
      ? []
      : indented(`${problem.message} [${problem.code}]`, '  ', 3),
  );
  return {
    lines: [
      `REJECTED  ${offered(refused)}${codeText(result)}`,
      ...details,
      ...others,
      // Print worker problems too: they do not concern the release, but may be worse for the users of the policy.
      ...result.problems.filter(({ code }) => workerCodes.has(code)).map(problemLine),
      `  ${staysText(result)}${result.changed ? '.' : '; no worker was touched.'}`,
      ...(remembered ? ['  It was refused before and has not changed: nothing was fetched.'] : []),
      ...[...retryText(refused), ...(remembered ? [`  hint: ${errorCodes.REMEMBERED_REFUSAL.hint}`] : [])],
    ],
    next: remembered ? 'writ status' : `writ history --cycle ${result.cycle}`,
  };
}

function showRolledBack(result: CycleResult): Block {
  const refused = withOutcome(result, 'rolled-back');
  const { generation, durationMs } = result;
  const back =
    generation === undefined ? 'no policy is active, as before,' : `generation ${generation} is active again`;
  const now = result.changed ? activeText(result) : back;
  const said = result.problems.filter((one) => one.code !== 'REMEMBERED_REFUSAL');
  const isPlain = result.confirmed || generation === undefined || result.workers.length === 0;
  // A silent worker causes no refusal, so nothing is remembered; the problem has the time of the retry.
  const isRemembered = refused.length > 0 && !result.problems.some(({ code }) => isImplicitRefusal(code));
  return {
    lines: [
      `ROLLED BACK${isPlain ? '' : ' (unconfirmed)'}  ${now} after ${seconds(durationMs)}${codeText(result)}`,
      ...said.flatMap((one) => indented(problemText(one, maxOutputLines), '  ', maxDetailLines)),
      ...(isRemembered ? [`  ${offered(refused)} is remembered as refused.`, ...retryText(refused)] : []),
    ],
    next: `writ history --cycle ${result.cycle}`,
  };
}

function showStopped(result: CycleResult, word: string, next: string): Block {
  const [problem, ...others] = result.problems;
  const concerned = withOutcome(result, result.outcome);
  const what = concerned.length === 0 ? '' : `  ${offered(concerned)}`;
  return {
    lines: [
      `${word}${what}${codeText(result)}`,
      ...(problem === undefined ? [] : indented(problemText(problem, maxOutputLines), '  ', maxDetailLines)),
      ...factLines(problem),
      ...others.map(problemLine),
      `  ${staysText(result)}.`,
      ...(result.changed ? [] : notifiedNow(result)),
      ...(problem === undefined ? [] : [`  hint: ${problem.hint}`]),
    ],
    next,
  };
}

/** The expected and the actual value, when the problem has both. */
function factLines(problem: Problem | undefined): string[] {
  const { expected, actual } = problem?.facts ?? {};
  if (expected === undefined || actual === undefined) return [];
  return [...indented(`expected ${expected}`, '  ', 1), ...indented(`actual   ${actual}`, '  ', 1)];
}

/** The active policy after the cycle, as a sentence without its full stop. */
function staysText(result: CycleResult): string {
  const { generation, fromGeneration, changed } = result;
  if (generation === undefined) return `No policy is active${fromGeneration === undefined ? ' yet' : ''}`;
  if (!changed) return `Generation ${generation}${activeList(result)} stays active`;
  const now = `Generation ${generation}${activeList(result)} is active`;
  if (result.bundles.some((one) => one.activeSerial !== undefined)) return now;
  // After the commit point, a result may lack its bundles: then only the number is certain.
  if (!result.bundles.some(isNowActive)) return `Generation ${generation} is active`;
  return `${now}: the other bundles have moved`;
}

function activeList(result: CycleResult): string {
  const active = releases(result.bundles.filter((one) => activeSerial(one) !== undefined));
  return active === '' ? '' : ` (${active})`;
}

function activeText(result: CycleResult): string {
  const { generation } = result;
  if (generation === undefined) return 'no policy is active';
  return `generation ${generation} is active${activeList(result)}`;
}

/** The serial that is active after the cycle, and after a rollback that followed it. */
function activeSerial(bundle: BundleResult): number | undefined {
  return bundle.activeSerial ?? (isNowActive(bundle) ? bundle.toSerial : bundle.fromSerial);
}

/** `dns-edge 42, 4f1c2e9`: the revision belongs to the offered serial. */
function releases(bundles: readonly BundleResult[]): string {
  return bundles
    .map((one) => {
      const serial = activeSerial(one);
      const revision = serial === one.toSerial && one.outcome === 'activated' ? one.revision : undefined;
      return `${one.bundle} ${serial ?? 'none'}${revision ? `, ${revision}` : ''}`;
    })
    .join('; ');
}

function offered(bundles: readonly BundleResult[]): string {
  return bundles.map((one) => `${one.bundle} ${one.toSerial ?? one.channel}`).join(', ');
}

function withOutcome(result: CycleResult, outcome: Outcome): readonly BundleResult[] {
  return result.bundles.filter((one) => one.outcome === outcome);
}

/** The problem of a bundle with the outcome of the cycle, or else the first problem of the result. */
function worstProblem(result: CycleResult): Problem | undefined {
  return withOutcome(result, result.outcome)[0]?.problem ?? result.problems[0];
}

function codeText(result: CycleResult): string {
  const code = worstProblem(result)?.code;
  return code === undefined ? '' : ` [${code}]`;
}

function retryText(refused: readonly BundleResult[]): string[] {
  return refused.flatMap(({ toSerial, retryAtMs }) => {
    if (retryAtMs === undefined) return [];
    const when = retryAtMs === 0 ? 'at the next cycle' : `from ${minuteTime(retryAtMs)}`;
    return [`  Serial ${toSerial} is tried again ${when}, or with --force; a newer serial at once.`];
  });
}

function problemLine({ code, message }: Problem): string {
  return `  [${code}] ${firstLine(message)}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
