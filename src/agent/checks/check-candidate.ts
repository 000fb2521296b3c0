// The step `check` of a candidate: every check of every bundle, again and again until nobody refuses what is left. Reads
// and runs, and swaps nothing.

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
import { type CheckReport, runChecks } from './run-checks.js';

/** @returns the end of the step `check`: what refused comes first, with what it printed under it */
export function checkStep(
  checks: readonly CheckReport[],
  verdict: 'ok' | 'fail' | 'skip',
): { text: string; verdict: 'ok' | 'warn' | 'fail' | 'skip' } {
  if (checks.length === 0) return { text: '', verdict: 'skip' };
  const isGood = ({ verdict: { kind } }: CheckReport): boolean => kind === 'ok' || kind === 'warned';
  const lines = [...checks.filter((one) => !isGood(one)), ...checks.filter(isGood)].flatMap(checkLines);
  const isWarned = verdict === 'ok' && checks.some((one) => one.verdict.kind === 'warned');
  return { text: lines.join('\n'), verdict: isWarned ? 'warn' : verdict };
}

function checkLines({ bundle, name, verdict, text }: CheckReport): string[] {
  const what = `${bundle}: ${name}`;
  if (verdict.kind === 'ok') return [`${what}: ok`];
  if (verdict.kind === 'warned') return [`${what}: warn (${verdict.reason})`];
  const output = text.split('\n').filter((line) => line.trim() !== '');
  return [`${what}: FAIL (${verdict.reason})`, ...bothEndsOfLines(output, maxOutputLines)];
}

const maxOutputLines = 5;

export interface CheckedCandidate {
  /** The refused ones are held back. */
  readonly selections: Selection[];
  readonly checks: readonly CheckReport[];
  /** The generation directory that every check has accepted; absent when nothing new is left. */
  readonly candidatePath?: string;
  readonly built: number;
}

/**
 * The `check` step. A refused bundle drops out with its set; the rest is built again and checked again as a
 * whole, as it will be active, until nobody refuses or nothing new is left.
 * @returns the selections with the refused ones held back, and the report of each check
 */
export async function checkAll(
  host: Host,
  selections: readonly Selection[],
  options: CheckAllOptions,
): Promise<CheckedCandidate> {
  let left = [...selections];
  const checks: CheckReport[] = [];
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

/** What of a host one round of checks needs. */
export type CheckingHost = Pick<Host, 'config' | 'paths' | 'durable' | 'clock' | 'log' | 'sandbox'>;

/** One round: the candidate is laid out, and every check of it runs once. */
export async function checkOnce(
  host: CheckingHost,
  selections: readonly Selection[],
  options: CheckAllOptions,
  candidatePath: string,
): Promise<{ reports: readonly CheckReport[]; refusals: ReadonlyMap<string, WritError> }> {
  const bundles = assembleCandidate(selections, options.staged, options.active);
  host.durable.makeDirectory('check.candidate', candidatePath, 0o755);
  for (const { selection, treePath } of bundles) {
    host.durable.createLink('check.candidate-link', join(candidatePath, selection.bundle.name), treePath);
  }
  const { reports, problems } = await runChecks({
    ...candidateContext(host, candidatePath, bundles, options),
    bundles: bundles.map(({ selection, treePath, manifest, staged }) => {
      const base = changeBaseOf(selection.bundle.name, staged?.release, options);
      return { config: selection.bundle, treePath, manifest, changed: staged !== undefined, base };
    }),
  });
  return { reports, refusals: blameNewBundles(problems, bundles) };
}

/** What a check of the change needs to know of this host. */
export interface ComparedReleases {
  readonly active: ReadonlyMap<string, Pick<ActiveBundle, 'manifest'> & { readonly record: KnownRecord }>;
  readonly settled?: readonly NamedRelease[];
}

type KnownRecord = Pick<ActiveBundle['record'], 'release'>;

/**
 * @param bundle its name
 * @param staged the release that is new in the candidate; left out: the active one stays
 */
export function changeBaseOf(
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
    // Parsed for a check that compares, and for no other.
    get manifest() {
      return old.manifest;
    },
  };
}

/**
 * A check of an unchanged bundle can only have failed because of what is new beside it: then every new bundle is
 * refused, for nobody knows which it was, and the active one stays as it is.
 */
function blameNewBundles(
  problems: ReadonlyMap<string, WritError>,
  bundles: readonly CandidateBundle[],
): ReadonlyMap<string, WritError> {
  const fresh = bundles.filter((one) => one.staged !== undefined).map((one) => one.selection.bundle.name);
  const direct = new Map([...problems].filter(([bundle]) => fresh.includes(bundle)));
  const first = [...problems.values()][0];
  if (direct.size > 0 || first === undefined) return direct;
  return new Map(fresh.map((bundle) => [bundle, first]));
}
