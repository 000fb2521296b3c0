// The `select` step: chooses the release of each bundle by its age, the restrictions of this host, and the free disk space. Decides by
// signed metadata alone, before any download.
import { type BundleConfig, bakeOf, setOf } from '../../core/config/config.js';
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import { problemText } from '../../core/cycle/problem-text.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { judgeRequires } from '../../core/release/requires.js';
import { withdraws } from '../../core/release/withdrawn.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { ActiveBundle } from '../generations/generation-contents.js';
import { judgeBakeGap } from '../settled/bake-gap-rules.js';
import { isCorrectionOn } from '../settled/correction-rules.js';
import type { Host } from '../state/host.js';
import { maxOutputLines, recordRefusals } from '../state/refusals.js';
import { acceptedFor } from './accepted-releases.js';
import { type AgeVerdict, judgeAge } from './age-rules.js';
import type { Offer, Offers } from './find-offers.js';
import { pacedUnseen } from './pace.js';
import { holdBackSets, type Selection, type Taken } from './selection.js';
import { judgeSpace } from './space-memory.js';
import { forWithdrawal, type NotNow, whyNotNow } from './why-not-now-rules.js';

export interface SelectOptions {
  readonly active: ReadonlyMap<string, ActiveBundle>;
  /** A pause, holds and the memory of refusals are ignored, not what a release requires; a current release is fetched again. */
  readonly force: 'yes' | 'no';
  /** Bundles refused earlier in this very cycle, with their results. */
  readonly refusedNow: ReadonlyMap<string, BundleResult>;
  readonly leavable: LeavableBundles;
}

/**
 * Names of bundles with a withdrawn active release, for which a kept release can become active. A remembered refusal of the
 * offered release counts only for them: otherwise the offered release is the only one that can replace the withdrawn one.
 */
export type LeavableBundles = ReadonlySet<string>;

/** @returns one selection per configured bundle, in the order of the configuration */
export function selectReleases(host: Host, offers: Offers, options: SelectOptions): Selection[] {
  const selections = host.config.bundles.map((bundle): Selection => {
    const refused = options.refusedNow.get(bundle.name);
    if (refused !== undefined) return { kind: 'keep', bundle, result: refused };
    return selectOne(host, bundle, { ...options, offer: offers.get(bundle.name) });
  });
  return holdBackSets(selections, host.config.together);
}

function selectOne(
  host: Host,
  bundle: BundleConfig,
  { offer, ...options }: SelectOptions & { readonly offer: Offer },
): Selection {
  const active = options.active.get(bundle.name);
  const target = offer instanceof WritError ? undefined : offer;
  const base = baseResult(bundle, active, target);
  const keep = (error: WritError, more: Partial<BundleResult> = {}): Selection => {
    const result = { ...base, ...more, outcome: outcomeOf(error), problem: problemOf(error) };
    return { kind: 'keep', bundle, result };
  };
  if (offer instanceof WritError) return keep(offer);
  if (target === undefined) return keepUnlisted(bundle, base, active);
  const verdict = judge(host, bundle, target, active);
  if (verdict.kind === 'refused')
    return keep(new WritError(verdict.code, verdict.message, { facts: verdict.facts }));
  if (verdict.kind === 'current' && options.force === 'no') return { kind: 'keep', bundle, result: base };
  const { release } = target;
  // A requirement of the publisher is not a restriction of this host, so that force does not end it.
  const tooNew = judgeRequires(release, host.features);
  if (tooNew !== undefined) return keep(tooNew);
  if (options.force === 'yes') return { kind: 'take', bundle, target, result: base };
  const notNow = findRestriction(host, release, { active, leavable: options.leavable });
  if (notNow !== undefined) {
    const { error, retryAtMs } = notNow;
    return keep(error, retryAtMs === undefined ? {} : { remembered: true, retryAtMs });
  }
  const isWithdrawal = withdraws(release, active?.record.release);
  const error = (isWithdrawal ? undefined : paceOf(host, release, active)) ?? judgeSpace(host, release);
  return error === undefined ? { kind: 'take', bundle, target, result: base } : keep(error);
}

/**
 * Judges a selected release again after other jobs have run. Space is not judged again, because the download has used some of it.
 * @param basis of the selection: the active release is still the same
 * @returns true where the release is still to be taken
 */
export function isStillSelected(host: Host, { target }: Taken, basis: ReleaseBasis): boolean {
  const { release } = target;
  const { active } = basis;
  if (findRestriction(host, release, basis) !== undefined) return false;
  return withdraws(release, active?.record.release) || paceOf(host, release, active) === undefined;
}

interface ReleaseBasis extends Pick<SelectOptions, 'leavable'> {
  readonly active: ActiveBundle | undefined;
}

/** @returns the error for which this host does not take a release now: a pause, a hold, a refusal; for a withdrawal fewer count */
function findRestriction(
  host: Host,
  release: ReleaseInfo,
  { active, leavable }: ReleaseBasis,
): NotNow | undefined {
  const { refusals } = host.refusals.read();
  const all = { ...host.ledger.read(), refusals };
  const canLeave = leavable.has(release.bundle);
  const isWithdrawal = withdraws(release, active?.record.release);
  const counting = isWithdrawal ? forWithdrawal(release, all, { canLeave }) : all;
  return whyNotNow(release, counting, host.clock.nowMs());
}

/** @returns the error of a release that waits, because releases before it failed or its groups have a pace; not for withdrawals */
function paceOf(host: Host, release: ReleaseInfo, active: ActiveBundle | undefined): WritError | undefined {
  if (active === undefined) return undefined;
  const { forMs } = bakeOf(host.config, release.bundle);
  const set = setOf(host.config, release.bundle);
  const ledger = host.ledger.read();
  const { refusals } = host.refusals.read();
  const isCorrection = isCorrectionOn({ ...ledger, refusals, active: active.record.release }, release);
  const gap = judgeBakeGap(release, ledger, { isCorrection, forMs, set, nowMs: host.clock.nowMs() });
  return gap ?? pacedUnseen(host, release, active);
}

function baseResult(bundle: BundleConfig, active?: ActiveBundle, target?: SignedTarget): BundleResult {
  return {
    bundle: bundle.name,
    channel: bundle.channel,
    outcome: 'unchanged',
    ...(active ? { fromSerial: active.record.release.serial } : {}),
    ...(target ? { toSerial: target.release.serial, revision: target.release.revision } : {}),
    // The history shows for which release the host did not wait for BAKE_GAP (adr/0059).
    ...given({ fixes: target?.release.fixes }),
    ...(target && withdraws(target.release, active?.record.release) ? { withdrawn: true } : {}),
  };
}

/** A bundle the repository no longer lists stays active and is reported; one it never listed is a failure. */
function keepUnlisted(bundle: BundleConfig, base: BundleResult, active: ActiveBundle | undefined): Selection {
  const error = new WritError(
    'TARGET_UNKNOWN',
    `the repository lists no ${bundle.name} on ${bundle.channel}`,
    {
      facts: { bundle: bundle.name, channel: bundle.channel },
    },
  );
  const outcome = active?.record.release.channel === bundle.channel ? 'unchanged' : 'failed';
  return { kind: 'keep', bundle, result: { ...base, outcome, problem: problemOf(error) } };
}

function judge(
  host: Host,
  bundle: BundleConfig,
  target: SignedTarget,
  active: ActiveBundle | undefined,
): AgeVerdict {
  const ledger = host.ledger.read();
  const lastChannel = ledger.channels[bundle.name];
  const accepted = acceptedFor(ledger, bundle.name, bundle.channel);
  const release = active?.record.release;
  return judgeAge({
    offered: target.release,
    accepted: accepted.map((one) => one.serial),
    highest: accepted.at(-1),
    active: release && { serial: release.serial, manifestDigest: release.manifest.digest },
    channelChanged: lastChannel !== undefined && lastChannel !== bundle.channel,
    // As for expiry: a host with a clock in 1970 uses the signed times.
    nowMs: Math.max(host.clock.nowMs(), host.client.status()?.clockFloorMs ?? 0),
  });
}

/** Remembers the bundles that were refused before the swap: entry rules, manifest, checks. */
export function rememberRefusedBundles(host: Host, selections: readonly Selection[]): void {
  for (const selection of selections) {
    const { result, offered } = selection.kind === 'keep' ? selection : { result: selection.result };
    if (offered === undefined || result.problem === undefined || result.outcome !== 'rejected') continue;
    const { code, facts } = result.problem;
    const message = problemText(result.problem, maxOutputLines);
    recordRefusals(host, [offered], { code, message, facts });
  }
}
