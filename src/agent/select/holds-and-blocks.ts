// Restrictions that a newer release or a person ends: the holds of a rollback, and candidates with cycles that crashed, which are
// counted and then blocked. Owns these members of the ledger; why-not-now-rules judges by them.
import type { Problem } from '../../core/cycle/cycle-report.js';
import type { NewRelease } from '../../core/release/release.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { recordEvent } from '../job/record.js';
import {
  type CommittedMove,
  type CrashCount,
  type ReleaseDigests,
  remainingSuspects,
} from '../state/crash-rules.js';
import type { Host } from '../state/host.js';
import {
  type AcceptedRelease,
  type ActivationBlock,
  type Hold,
  type Ledger,
  ledgerSection,
} from '../state/ledger.js';
import { dropBlockedRestore } from '../state/restore-memory.js';

const changeRestrictions = ledgerSection('holds', 'crashes', 'blocked');

const maxReasonCharacters = 1000;

/** @returns the ledger with these holds, without the earlier ones of the same bundles that they include */
export function withHolds(ledger: Ledger, holds: readonly Hold[]): Ledger {
  const others = ledger.holds.filter(
    (one) => !holds.some((hold) => hold.bundle === one.bundle && hold.serial >= one.serial),
  );
  return changeRestrictions(ledger, { holds: [...others, ...holds] });
}

/** @returns the ledger without the holds that this release ends by its serial */
export function withoutHoldsUpTo(ledger: Ledger, { bundle, serial }: NewRelease): Ledger {
  const holds = ledger.holds.filter((one) => one.bundle !== bundle || one.serial > serial);
  return changeRestrictions(ledger, { holds });
}

/** @returns the ledger without the holds of Writ itself on these releases, by bundle; the holds of persons stay */
export function withoutHoldsOf(
  ledger: Ledger,
  releases: readonly (readonly [string, AcceptedRelease])[],
): Ledger {
  const isOwn = ({ bundle, serial, manifestDigest, by }: Hold): boolean =>
    by === 'writ' &&
    releases.some(
      ([name, one]) => name === bundle && one.serial === serial && one.manifestDigest === manifestDigest,
    );
  return changeRestrictions(ledger, { holds: ledger.holds.filter((one) => !isOwn(one)) });
}

/** Ends the holds on releases that are active again because a rollback from them failed. */
export function withoutHoldsOn(ledger: Ledger, active: ReleaseDigests): Ledger {
  const holds = ledger.holds.filter(({ bundle, manifestDigest }) => active[bundle] !== manifestDigest);
  return changeRestrictions(ledger, { holds });
}

/** Ends all holds and blocks, for a person. The count of crashes begins again too. */
export function withoutRestrictions(ledger: Ledger): Ledger {
  return changeRestrictions(ledger, { holds: [], crashes: undefined, blocked: undefined });
}

/** @returns the ledger with this count of crashed cycles; undefined ends the count */
export function withCrashes(ledger: Ledger, crashes: CrashCount | undefined): Ledger {
  return changeRestrictions(ledger, { crashes });
}

/**
 * Blocks releases, and replaces an earlier block. Throws nothing.
 * @param releases manifest digests by bundle of the releases that no poll tries again; a forced pull ignores the block
 * @returns the ledger with the block: the reason cut to 1000 characters, and each digest once in `manifestDigests`. Without
 *   `until` the block has no such member. The caller writes the ledger
 */
export function withBlock(
  ledger: Ledger,
  {
    releases,
    ...block
  }: Pick<ActivationBlock, 'reason' | 'atMs' | 'until'> & { readonly releases: ReleaseDigests },
): Ledger {
  const { reason, atMs, until } = block;
  const text = reason.slice(0, maxReasonCharacters);
  const manifestDigests = [...new Set(Object.values(releases))];
  const blocked = {
    reason: text,
    atMs,
    manifestDigests,
    releases,
    ...(until === undefined ? {} : { until }),
  };
  return changeRestrictions(ledger, { blocked });
}

/**
 * Ends a block that failing workers caused, once none of them is pending: each of them runs and uses the active generation. Their
 * refusals are remembered apart.
 */
export function endBlockOfWorkers(host: Host, problems: readonly Problem[]): void {
  const { ledger } = host;
  const known = ledger.read();
  if (known.blocked?.until !== 'workers' || problems.length > 0) return;
  dropBlockedRestore(host, { active: activeGenerationNumber(host.paths), shouldNotify: false });
  ledger.write(changeRestrictions(known, { blocked: undefined }));
  const reason = `the block has ended, every worker uses the active generation: ${known.blocked.reason}`;
  recordEvent(host, { trigger: 'pending', by: 'writ', reason, problems: [] });
}

/** Ends the count and the block of candidates with a complete cycle; those that only waited beside them keep theirs. */
export function withoutCommitted(ledger: Ledger, commit: CommittedMove): Ledger {
  const { crashes, blocked } = ledger;
  const counted = crashes && remainingSuspects(crashes.manifestDigests, commit);
  // Ledgers of older versions do not have the bundles of a block: such a block ends here.
  const kept = blocked?.releases && remainingSuspects(blocked.releases, commit);
  const next = changeRestrictions(ledger, {
    crashes: crashes && counted && { ...crashes, manifestDigests: counted },
    blocked: undefined,
  });
  return blocked && kept ? withBlock(next, { ...blocked, releases: kept }) : next;
}
