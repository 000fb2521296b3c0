// The ledger as a commit leaves it: what is good now, what is the backup, and who is suspect no more. Computes;
// the commit writes.
import type { NewRelease } from '../../core/release/release.js';
import { releaseNamesIn, releasesNamedBy } from '../generations/generation-contents.js';
import { loadedAtCommit } from '../notify/boot-loaders.js';
import { withoutWaits } from '../select/waits.js';
import { type ReleaseDigests, stillSuspect } from '../state/crash-rules.js';
import type { Host } from '../state/host.js';
import { blockOf, type Ledger } from '../state/ledger.js';
import type { Move } from './move.js';

/** @param cycle the one that the journal of this move names */
export function committedLedger(host: Host, move: Move, cycle: string): Ledger {
  const known = withoutWaits(host.ledger.read(), move.releases);
  const { previous: before, ...ledger } = withoutSuspects(host, known, move);
  const { to } = move;
  // A rollback leaves the generation it came from behind: it is not what the next rollback should go to. Nor is a
  // damaged one: after a repair that is what it was before.
  const from = { update: move.from, repair: before, rollback: undefined }[move.kind];
  return {
    ...ledger,
    lastKnownGood: to,
    settled: to,
    committedCycle: cycle,
    activatedAtMs: activatedAtCommit(host, known, move),
    ...loadedAtCommit(host, move.groups),
    ...(from === undefined || from === to ? {} : { previous: from }),
  };
}

/** A release that comes back by a rollback is active since then, whenever its tree was made. */
function activatedAtCommit({ paths, clock }: Host, { activatedAtMs = {} }: Ledger, move: Move): Times {
  const before = move.from === undefined ? undefined : releaseNamesIn(paths, move.from);
  const times = [...releaseNamesIn(paths, move.to)].flatMap(([bundle, name]) => {
    const atMs = before?.get(bundle) === name ? activatedAtMs[bundle] : clock.nowMs();
    return atMs === undefined ? [] : [[bundle, atMs] as const];
  });
  return Object.fromEntries(times);
}

type Times = NonNullable<Ledger['activatedAtMs']>;

/** A candidate that reached its end is counted and blocked no more; one that only waited beside it still is. */
function withoutSuspects(host: Host, ledger: Ledger, move: Move): Ledger {
  const { crashes, blocked, ...rest } = ledger;
  if (crashes === undefined && blocked === undefined) return ledger;
  const commit = {
    configured: host.config.bundles.map((one) => one.name),
    active: digestsOf(releasesNamedBy(host.paths, move.to)),
    changed: move.releases.map((one) => one.bundle),
  };
  const counted = crashes && stillSuspect(crashes.manifestDigests, commit);
  // Ledgers of older versions do not say for which bundles they block: those blocks end here.
  const kept = blocked?.releases && stillSuspect(blocked.releases, commit);
  return {
    ...rest,
    ...(crashes && counted ? { crashes: { ...crashes, manifestDigests: counted } } : {}),
    ...(blocked && kept ? { blocked: blockOf(blocked.reason, blocked.atMs, kept) } : {}),
  };
}

/** Their digests by bundle. */
export function digestsOf(releases: readonly NewRelease[]): ReleaseDigests {
  return Object.fromEntries(releases.map(({ bundle, manifest }) => [bundle, manifest.digest]));
}
