// The result of `writ check`: each check with its verdict and its output, refusals first. Pure: a verdict in, an
// answer out.
import type { SourceVerdict } from '../../agent/checks/check-source.js';
import type { BundleCheckReport } from '../../agent/checks/run-checks.js';
import type { BundleConfig } from '../../core/config/config.js';
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import { exitCodeOfKind, type WritError } from '../../core/errors.js';
import { sizeText } from '../../core/size-text.js';
import type { SourceTree } from '../../publisher/archive/source-tree.js';
import type { Answer } from '../console/command.js';
import { counted, indented, seconds } from './show-text.js';

export interface Checked extends SourceVerdict {
  /** The bundle to check. */
  readonly bundle: BundleConfig;
  readonly tree: SourceTree;
  readonly archiveBytes: number;
}

/** Lines of output of one check in the text; --json has all retained lines. */
const maxOutputLines = 40;

/**
 * `source` and `config` are the paths of the command line.
 * @returns the answer. Its outcome and exit code are those of the worst problem; without one `accepted` and 0.
 */
export function checkAnswer(
  checked: Checked,
  { source, config }: { readonly source: string; readonly config: string },
): Answer {
  const { bundle, tree, reports, problems, sandbox, archiveBytes } = checked;
  const { files } = tree.manifest;
  const bytes = files.reduce((sum, one) => sum + one.sizeBytes, 0);
  const worst = worstOf([...problems.values()]);
  const outcome = worst === undefined ? 'accepted' : outcomeOf(worst);
  const details = {
    ...{
      source,
      config,
      bundle: bundle.name,
      channel: bundle.channel,
      files: files.length,
      bytes,
      archiveBytes,
    },
    manifestDigest: tree.manifestDigest,
    excluded: tree.excluded,
    checks: reports.map(({ bundle: of, name, verdict, text, durationMs }) => {
      return { bundle: of, check: name, verdict: verdict.kind, reason: verdict.reason, text, durationMs };
    }),
    problems: [...problems.values()].map(problemOf),
    sandbox,
  };
  const what = `${bundle.name} from ${source}: ${counted(files.length, 'file')}, ${sizeText(bytes)}`;
  const ran = reports.length === 0 ? 'no check is configured' : counted(reports.length, 'check');
  return {
    outcome,
    ...(worst === undefined ? {} : { exitCode: exitCodeOfKind[worst.kind] }),
    details,
    lines: [
      `${outcome.toUpperCase()} ${what}, ${ran}`,
      ...(tree.excluded.length === 0 ? [] : [`  left out: ${firstOf(tree.excluded)}`]),
      ...inOrder(reports).flatMap(reportLines),
      ...[...problems.values()].flatMap(({ code, message, hint }) => [
        `  ${code}  ${message}`,
        `    hint: ${hint}`,
      ]),
    ],
  };
}

/** A rejection outranks a failure without a verdict, and that outranks a deferral. */
function worstOf(problems: readonly WritError[]): WritError | undefined {
  const weight = ({ kind }: WritError): number => (kind === 'rejected' ? 2 : kind === 'deferred' ? 0 : 1);
  return [...problems].sort((a, b) => weight(b) - weight(a))[0];
}

function isGood({ verdict: { kind } }: BundleCheckReport): boolean {
  return kind === 'ok' || kind === 'warned';
}

function inOrder(reports: readonly BundleCheckReport[]): BundleCheckReport[] {
  return [...reports.filter((one) => !isGood(one)), ...reports.filter(isGood)];
}

function reportLines(report: BundleCheckReport): string[] {
  const { bundle, name, verdict, text, durationMs } = report;
  const label = verdict.kind === 'ok' ? 'ok  ' : verdict.kind === 'warned' ? 'warn' : 'FAIL';
  const line = `  ${label}  ${bundle}: ${name} (${verdict.reason}, ${seconds(durationMs)})`;
  return verdict.kind === 'ok' ? [line] : [line, ...indented(text, '        ', maxOutputLines)];
}

function firstOf(paths: readonly string[]): string {
  return `${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ` and ${paths.length - 5} more` : ''}`;
}
