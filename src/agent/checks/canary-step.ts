// The step `canary`: runs the canaries of the affected groups on a checked candidate, before the swap. A refusal counts for the
// new bundles that the group uses, and for the bundles that move together with them. The rest is checked and runs again.
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
import { noteSilentCanaries } from './silent-canaries.js';
import { watchCandidate } from './watch-candidate.js';

export interface CanaryStepOptions extends CheckAllOptions {
  /** `yes`: also run the canaries of groups that the change does not affect, because `--force` must not skip a check. */
  readonly force: 'yes' | 'no';
}

export interface CanariedCandidate extends CheckedCandidate {
  /** CANARY_SILENT for each canary that reached no process. */
  readonly warnings: readonly Problem[];
}

/** @returns the candidate that every canary accepts, and a line for each canary that ran */
export async function canaryStep(
  host: Host,
  checked: CheckedCandidate,
  options: CanaryStepOptions,
): Promise<StepAnswer<CanariedCandidate>> {
  let left = checked;
  const reports: CanaryReport[] = [];
  // Ends, because each round removes at least one bundle.
  while (left.candidatePath !== undefined) {
    const refusals = await runCanaryRound(host, left, { ...options, reports });
    if (refusals.size === 0) break;
    const selections = holdBack(host, left.selections, refusals);
    left = await checkAll(host, selections, { ...options, built: left.built });
  }
  const warnings = noteSilentCanaries(host, reports);
  return { value: { ...left, warnings }, ...formatReports(reports, { before: checked, after: left }) };
}

async function runCanaryRound(
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
  const refusals = toBundleRefusals(host, problems, bundles);
  const names = new Set(newBundleNames(bundles));
  // A changed candidate outweighs any verdict. Only new bundles can be removed from the candidate.
  for (const [bundle, error] of await changes()) {
    for (const name of names.has(bundle) ? [bundle] : names) refusals.set(name, error);
  }
  return refusals;
}

/** Maps the problem of a group to all new bundles that it uses, because it is unknown which of them is the cause. */
function toBundleRefusals(
  host: Host,
  problems: ReadonlyMap<string, WritError>,
  bundles: readonly CandidateBundle[],
): Map<string, WritError> {
  const fresh = newBundleNames(bundles);
  const refusals = new Map<string, WritError>();
  // For one bundle, a refusal outweighs a broken canary, and that outweighs a deferral.
  const weight = ({ kind }: WritError): number => (kind === 'rejected' ? 2 : kind === 'deferred' ? 0 : 1);
  for (const [group, error] of [...problems].sort(([, one], [, other]) => weight(one) - weight(other))) {
    const uses = host.config.workers.find((one) => one.name === group)?.uses ?? [];
    const used = fresh.filter((name) => uses.includes(name));
    for (const bundle of used.length > 0 ? used : fresh) refusals.set(bundle, error);
  }
  return refusals;
}

function newBundleNames(bundles: readonly CandidateBundle[]): string[] {
  return bundles.filter((one) => one.staged !== undefined).map((one) => one.selection.bundle.name);
}

function formatReports(
  reports: readonly CanaryReport[],
  { before, after }: { readonly before: CheckedCandidate; readonly after: CheckedCandidate },
): Pick<StepAnswer<unknown>, 'text' | 'verdict'> & { readonly text: string } {
  if (reports.length === 0) return { text: '', verdict: 'skip' };
  const change = { before: before.selections, after: after.selections };
  const lines = reports.map(({ group, verdict: { kind, reason } }) => {
    return `${group}: ${kind === 'ok' ? 'ok' : `${kind} (${reason})`}`;
  });
  const verdict = judgeStep(change);
  // A canary that reached no process refuses nothing: the group is notified after the swap, or reported as unreachable there.
  const isWarning = ({ verdict: { kind } }: CanaryReport): boolean =>
    kind === 'warned' || kind === 'unreachable';
  const isWarned = verdict === 'ok' && reports.some(isWarning);
  return { text: formatFailures(change, lines.join(', ')), verdict: isWarned ? 'warn' : verdict };
}
