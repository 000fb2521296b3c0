// The `canary` step: the groups that a checked candidate concerns are asked before anybody can see it. A no falls on
// the new bundles that the group uses, with their sets; what is left is checked again as a whole, and asked again.
import type { Problem } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import { affectsGroup } from '../../core/release/affected-groups.js';
import type { StepAnswer } from '../job/progress.js';
import { holdBack, taken } from '../select/selection.js';
import { assembleCandidate, type CandidateBundle, listChangedPaths } from '../staging/candidate.js';
import { formatFailures, judgeStep } from '../staging/step-text.js';
import type { Host } from '../state/host.js';
import { type CheckAllOptions, candidateContext } from './candidate-context.js';
import { type CheckedCandidate, checkAll } from './check-candidate.js';
import { type CanaryReport, runCanaries } from './run-canaries.js';
import { noteUnheard } from './unheard-canaries.js';
import { watchCandidate } from './watch-candidate.js';

export interface CanaryStepOptions extends CheckAllOptions {
  /** `yes`: also groups that the difference does not concern, for `--force` skips no check. */
  readonly force: 'yes' | 'no';
}

export interface AskedCandidate extends CheckedCandidate {
  /** CANARY_SILENT for each canary that reached nobody. */
  readonly warnings: readonly Problem[];
}

/** @returns what every canary has accepted, and a line for each that was asked */
export async function canaryStep(
  host: Host,
  checked: CheckedCandidate,
  options: CanaryStepOptions,
): Promise<StepAnswer<AskedCandidate>> {
  let left = checked;
  const reports: CanaryReport[] = [];
  // Each round holds back one bundle at least.
  while (left.candidatePath !== undefined) {
    const refusals = await askOnce(host, left, { ...options, reports });
    if (refusals.size === 0) break;
    const selections = holdBack(host, left.selections, refusals);
    left = await checkAll(host, selections, { ...options, built: left.built });
  }
  const warnings = noteUnheard(host, reports);
  return { value: { ...left, warnings }, ...textOf(reports, { before: checked, after: left }) };
}

async function askOnce(
  host: Host,
  { selections, candidatePath = '' }: CheckedCandidate,
  options: CanaryStepOptions & { readonly reports: CanaryReport[] },
): Promise<ReadonlyMap<string, WritError>> {
  const bundles = assembleCandidate(selections, options.staged, options.active);
  const changed = listChangedPaths(options.active, bundles);
  const fresh = options.force === 'yes' ? taken(selections).map((one) => one.bundle.name) : [];
  const groups = host.config.workers.filter((group) => affectsGroup(group, changed, fresh));
  if (groups.every((one) => one.canary === undefined)) return new Map();
  const context = candidateContext(host, candidatePath, bundles, options);
  const changes = await watchCandidate({
    ...context,
    bundles: bundles.map(({ selection, treePath }) => ({ config: selection.bundle, treePath })),
  });
  const { reports, problems } = await runCanaries({
    ...context,
    groups,
    treePaths: new Map(bundles.map(({ selection, treePath }) => [selection.bundle.name, treePath])),
  });
  options.reports.push(...reports);
  const refusals = blame(host, problems, bundles);
  const names = new Set(freshIn(bundles));
  // It stands over any verdict, and only what is new can be held back.
  for (const [bundle, error] of await changes()) {
    for (const name of names.has(bundle) ? [bundle] : names) refusals.set(name, error);
  }
  return refusals;
}

/** As a worker's refusal: one of the new bundles that the group uses is the culprit, and nobody knows which. */
function blame(
  host: Host,
  problems: ReadonlyMap<string, WritError>,
  bundles: readonly CandidateBundle[],
): Map<string, WritError> {
  const fresh = freshIn(bundles);
  const refusals = new Map<string, WritError>();
  // A refusal stands over what was broken or only waits, whoever said it.
  const weight = ({ kind }: WritError): number => (kind === 'rejected' ? 2 : kind === 'deferred' ? 0 : 1);
  for (const [group, error] of [...problems].sort(([, one], [, other]) => weight(one) - weight(other))) {
    const uses = host.config.workers.find((one) => one.name === group)?.uses ?? [];
    const used = fresh.filter((name) => uses.includes(name));
    for (const bundle of used.length > 0 ? used : fresh) refusals.set(bundle, error);
  }
  return refusals;
}

function freshIn(bundles: readonly CandidateBundle[]): string[] {
  return bundles.filter((one) => one.staged !== undefined).map((one) => one.selection.bundle.name);
}

function textOf(
  reports: readonly CanaryReport[],
  { before, after }: { readonly before: CheckedCandidate; readonly after: CheckedCandidate },
): Pick<StepAnswer<unknown>, 'text' | 'verdict'> & { readonly text: string } {
  if (reports.length === 0) return { text: '', verdict: 'skip' };
  const change = { before: before.selections, after: after.selections };
  const lines = reports.map(({ group, verdict: { kind, reason } }) => {
    return `${group}: ${kind === 'ok' ? 'ok' : `${kind} (${reason})`}`;
  });
  const verdict = judgeStep(change);
  // Who could not be asked has refused nothing: the group is asked again behind the swap, or is missed there.
  const isWarning = ({ verdict: { kind } }: CanaryReport): boolean =>
    kind === 'warned' || kind === 'unreachable';
  const isWarned = verdict === 'ok' && reports.some(isWarning);
  return { text: formatFailures(change, lines.join(', ')), verdict: isWarned ? 'warn' : verdict };
}
