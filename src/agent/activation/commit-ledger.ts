// Computes the ledger after a commit: the last known good generation, the backup, and the workers that are no longer
// suspect. Owns the members that name generations of moves. The caller writes the ledger.
import type { NewRelease } from '../../core/release/release.js';
import { readBootId } from '../../platform/process/boot-id.js';
import {
  readAcceptedReleases,
  readNamedReleases,
  readReleaseNames,
} from '../generations/generation-contents.js';
import { withLoaded } from '../notify/boot-loaders.js';
import { withoutCommitted } from '../select/holds-and-blocks.js';
import { withoutWaits } from '../select/waits.js';
import { contactAtStart, withContactBefore, withoutLostUpTo } from '../settled/contact-ledger.js';
import { withBakesOf } from '../settled/settled-ledger.js';
import type { ReleaseDigests } from '../state/crash-rules.js';
import type { Host } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';
import type { Move } from './move.js';

const changeMoved = ledgerSection('settled', 'committedCycle', 'previous', 'lastKnownGood', 'activatedAtMs');

export interface Committing {
  /** The cycle that the journal of this move names. */
  readonly cycle: string;
  /** Epoch milliseconds of the swap, at which the bake times begin. */
  readonly swappedAtMs: number;
}

/** @returns the ledger after the commit of a move, with the bake times of its releases */
export function committedLedger(host: Host, move: Move, { cycle, swappedAtMs }: Committing): Ledger {
  const known = withoutWaits(host.ledger.read(), move.releases);
  const { to } = move;
  // The next rollback must not return to the generation that a rollback has left, nor to the damaged one of a repair. After
  // a repair the previous generation therefore stays the same.
  const from = { update: move.from, repair: known.previous, rollback: undefined }[move.kind];
  const committed = changeMoved(withoutSuspects(host, known, move), {
    lastKnownGood: to,
    settled: to,
    committedCycle: cycle,
    activatedAtMs: activationTimes(host, known, move),
    previous: from === to ? undefined : from,
  });
  const baking = withBakesIn(host, committed, { generation: to, nowMs: swappedAtMs, contactAfter: to });
  const active = readAcceptedReleases(host.paths, to);
  return withLoaded(host, withContactBefore(withoutLostUpTo(baking, active), undefined), move.groups);
}

/**
 * Computes the ledger after a restore.
 * @param move.from the restored generation. It differs from the one before the swap if that one is damaged
 * @param move.to the generation that the restore leaves. If it was committed, the restored releases count as active from now
 */
export function withRestoredGeneration(
  host: Host,
  ledger: Ledger,
  { from, to }: { readonly from: number | undefined; readonly to: number },
): Ledger {
  if (from === undefined) return changeMoved(ledger, { settled: from });
  const isCommitted = ledger.settled === to;
  const nowMs = host.clock.nowMs();
  const moved = changeMoved(ledger, {
    ...{ settled: from, lastKnownGood: from },
    ...(isCommitted ? { activatedAtMs: activationTimes(host, ledger, { from: to, to: from }) } : {}),
  });
  return withBakesIn(host, moved, { generation: from, nowMs });
}

interface BakesIn {
  readonly generation: number;
  readonly nowMs: number;
  /** The new generation, if the contact was checked before its swap; left out in a restore. */
  readonly contactAfter?: number;
}

/** Begins the bake times. A restored release that never settled gets its full bake time, and may then be rolled back. */
function withBakesIn(
  { paths, config }: Host,
  ledger: Ledger,
  { generation, nowMs, contactAfter }: BakesIn,
): Ledger {
  return withBakesOf(ledger, readAcceptedReleases(paths, generation), {
    ...{ config, nowMs, bootId: readBootId() },
    contactOf: (bundle, release) =>
      contactAfter === undefined
        ? undefined
        : contactAtStart(ledger, config, { bundle, release, generation: contactAfter }),
  });
}

/** @returns the ledger with another generation, or none, in each place (previous, last known good) that names this backup */
export function withBackup(ledger: Ledger, old: number, made: number | undefined): Ledger {
  const { previous, lastKnownGood } = ledger;
  return changeMoved(ledger, {
    previous: previous === old ? made : previous,
    lastKnownGood: lastKnownGood === old ? made : lastKnownGood,
  });
}

/** @returns the ledger without a previous generation: no rollback has a target then */
export function withoutPrevious(ledger: Ledger): Ledger {
  return changeMoved(ledger, { previous: undefined });
}

/**
 * Sets the last known good generation, and changes no other member.
 * @param lastKnownGood the number of a generation with a committed move; undefined removes the member. It is not checked on disk
 * @returns the changed ledger. The caller writes it. Throws nothing.
 */
export function withLastKnownGood(ledger: Ledger, lastKnownGood: number | undefined): Ledger {
  return changeMoved(ledger, { lastKnownGood });
}

/** @returns the activation times by bundle. A release that a rollback activates counts from then, not from its first time. */
function activationTimes(
  { paths, clock }: Host,
  { activatedAtMs = {} }: Ledger,
  move: Pick<Move, 'from' | 'to'>,
): Times {
  const before = move.from === undefined ? undefined : readReleaseNames(paths, move.from);
  const times = [...readReleaseNames(paths, move.to)].flatMap(([bundle, name]) => {
    const atMs = before?.get(bundle) === name ? activatedAtMs[bundle] : clock.nowMs();
    return atMs === undefined ? [] : [[bundle, atMs] as const];
  });
  return Object.fromEntries(times);
}

type Times = NonNullable<Ledger['activatedAtMs']>;

function withoutSuspects(host: Host, ledger: Ledger, move: Move): Ledger {
  if (ledger.crashes === undefined && ledger.blocked === undefined) return ledger;
  return withoutCommitted(ledger, {
    configured: host.config.bundles.map((one) => one.name),
    active: digestsOf(readNamedReleases(host.paths, move.to)),
    changed: move.releases.map((one) => one.bundle),
  });
}

/** @returns the digest of each manifest by bundle */
export function digestsOf(releases: readonly NewRelease[]): ReleaseDigests {
  return Object.fromEntries(releases.map(({ bundle, manifest }) => [bundle, manifest.digest]));
}
