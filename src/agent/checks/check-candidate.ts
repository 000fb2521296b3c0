// The step `check`: runs every check of every bundle, removes refused bundles from the candidate, and repeats until no check
// refuses the rest. Does not change the active policy.

import { join } from 'node:path';
import type { WritError } from '../../core/errors.js';
import type { NamedRelease, ReleaseInfo } from '../../core/release/release.js';
import { bothEndsOfLines } from '../../core/text/both-ends.js';
import type { ActiveBundle } from '../generations/generation-contents.js';
import { holdBack, type Selection, taken } from '../select/selection.js';
import { assembleCandidate, type CandidateBundle } from '../staging/candidate.js';
import type { Host } from '../state/host.js';
import { type CheckAllOptions, candidateContext } from './candidate-context.js';
import type { ChangeBase } from './change-check.js';
import { findChangeExemption } from './change-exemption-rules.js';
import { type BundleCheckReport, runChecks } from './run-checks.js';

/** @returns text and verdict of the step `check`; failed checks come first, each with its output */
export function checkStep(
  checks: readonly BundleCheckReport[],
  verdict: 'ok' | 'fail' | 'skip',
): { text: string; verdict: 'ok' | 'warn' | 'fail' | 'skip' } {
  if (checks.length === 0) return { text: '', verdict: 'skip' };
  const isGood = ({ verdict: { kind } }: BundleCheckReport): boolean => kind === 'ok' || kind === 'warned';
  const lines = [...checks.filter((one) => !isGood(one)), ...checks.filter(isGood)].flatMap(checkLines);
  const isWarned = verdict === 'ok' && checks.some((one) => one.verdict.kind === 'warned');
  return { text: lines.join('\n'), verdict: isWarned ? 'warn' : verdict };
}

function checkLines({ bundle, name, verdict, text }: BundleCheckReport): string[] {
  const what = `${bundle}: ${name}`;
  if (verdict.kind === 'ok') return [`${what}: ok`];
  if (verdict.kind === 'warned') return [`${what}: warn (${verdict.reason})`];
  const output = text.split('\n').filter((line) => line.trim() !== '');
  return [`${what}: FAIL (${verdict.reason})`, ...bothEndsOfLines(output, maxOutputLines)];
}

const maxOutputLines = 5;

export interface CheckedCandidate {
  /** All selections; refused bundles are held back. */
  readonly selections: Selection[];
  readonly checks: readonly BundleCheckReport[];
  /** The candidate directory that every check accepted; absent if no new bundle is left. */
  readonly candidatePath?: string;
  readonly built: number;
}

/**
 * Runs the step `check`. Removes a refused bundle and the bundles that move together with it, builds the rest as a whole
 * candidate and checks it again, until no check refuses or no new bundle is left.
 * @returns the selections with the refused ones held back, and the report of each check
 */
export async function checkAll(
  host: Host,
  selections: readonly Selection[],
  options: CheckAllOptions,
): Promise<CheckedCandidate> {
  let left = [...selections];
  const checks: BundleCheckReport[] = [];
  let built = options.built ?? 0;
  while (taken(left).length > 0) {
    const candidatePath = join(options.staging, `candidate-${built}`);
    built += 1;
    const { reports, refusals } = await checkOnce(host, left, options, candidatePath);
    checks.push(...reports);
    if (refusals.size === 0) return { selections: left, checks, candidatePath, built };
    left = holdBack(host, left, refusals);
  }
  return { selections: left, checks, built };
}

/** The parts of a host that one round of checks needs. */
export type CheckingHost = Pick<Host, 'config' | 'paths' | 'durable' | 'clock' | 'log' | 'sandbox'>;

/** Runs one round: builds the candidate directory, and runs every check once. */
export async function checkOnce(
  host: CheckingHost,
  selections: readonly Selection[],
  options: CheckAllOptions,
  candidatePath: string,
): Promise<{ reports: readonly BundleCheckReport[]; refusals: ReadonlyMap<string, WritError> }> {
  const bundles = assembleCandidate(selections, options.staged, options.active);
  host.durable.makeDirectory('check.candidate', candidatePath, 0o755);
  for (const { selection, treePath } of bundles) {
    host.durable.createLink('check.candidate-link', join(candidatePath, selection.bundle.name), treePath);
  }
  const { reports, problems } = await runChecks({
    ...candidateContext(host, candidatePath, bundles, options),
    bundles: bundles.map(({ selection, treePath, manifest, staged }) => {
      const base = chooseChangeBase(selection.bundle.name, staged?.release, options);
      return { config: selection.bundle, treePath, manifest, changed: staged !== undefined, base };
    }),
  });
  return { reports, refusals: toNewBundleRefusals(problems, bundles) };
}

/** The releases of this host that a change check needs. */
export interface ComparedReleases {
  readonly active: ReadonlyMap<string, Pick<ActiveBundle, 'manifest'> & { readonly record: KnownRecord }>;
  readonly settled?: readonly NamedRelease[];
}

type KnownRecord = Pick<ActiveBundle['record'], 'release'>;

/**
 * @param bundle name of the bundle
 * @param staged its new release in the candidate; undefined if the active release stays
 * @returns what a change check compares the release with
 */
export function chooseChangeBase(
  bundle: string,
  staged: ReleaseInfo | undefined,
  { active, settled = [] }: ComparedReleases,
): ChangeBase {
  const old = active.get(bundle);
  const known = old?.record.release;
  const offered = staged ?? known;
  const reason = offered && findChangeExemption({ active: known, offered, settled });
  if (old === undefined || reason !== undefined) return { kind: 'exempt', reason: reason ?? 'first release' };
  return {
    kind: 'active',
    // A getter, because the manifest is parsed only for a check that compares.
    get manifest() {
      return old.manifest;
    },
  };
}

/**
 * Maps problems to new bundles. If only checks of unchanged bundles failed, a new bundle must be the cause. It is unknown which
 * one, so every new bundle is refused.
 */
function toNewBundleRefusals(
  problems: ReadonlyMap<string, WritError>,
  bundles: readonly CandidateBundle[],
): ReadonlyMap<string, WritError> {
  const fresh = bundles.filter((one) => one.staged !== undefined).map((one) => one.selection.bundle.name);
  const direct = new Map([...problems].filter(([bundle]) => fresh.includes(bundle)));
  const first = [...problems.values()][0];
  if (direct.size > 0 || first === undefined) return direct;
  return new Map(fresh.map((bundle) => [bundle, first]));
}
