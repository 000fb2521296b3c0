// The ledger as a commit leaves it: what is good now, what is the backup, and who is suspect no more. Owns its members that
// name the generations of moves; computes, and whoever acts writes.
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
  /** The one that the journal of this move names. */
  readonly cycle: string;
  /** Epoch milliseconds of the swap: a bake time begins there. */
  readonly swappedAtMs: number;
}

export function committedLedger(host: Host, move: Move, { cycle, swappedAtMs }: Committing): Ledger {
  const known = withoutWaits(host.ledger.read(), move.releases);
  const { to } = move;
  // A rollback leaves the generation it came from behind: it is not what the next rollback should go to. Nor is a
  // damaged one: after a repair that is what it was before.
  const from = { update: move.from, repair: known.previous, rollback: undefined }[move.kind];
  const committed = changeMoved(withoutSuspects(host, known, move), {
    lastKnownGood: to,
    settled: to,
    committedCycle: cycle,
    activatedAtMs: activatedAtCommit(host, known, move),
    previous: from === to ? undefined : from,
  });
  const baking = withBakesIn(host, committed, { generation: to, nowMs: swappedAtMs, contactAfter: to });
  const active = readAcceptedReleases(host.paths, to);
  return withLoaded(host, withContactBefore(withoutLostUpTo(baking, active), undefined), move.groups);
}

/**
 * @param back `from`: where the link is again; not always the generation before the swap, for that may be damaged. `to`: the
 * generation that is left; where it had been committed, releases that come back are active from now on
 */
export function withWayBack(
  host: Host,
  ledger: Ledger,
  { from, to }: { readonly from: number | undefined; readonly to: number },
): Ledger {
  if (from === undefined) return changeMoved(ledger, { settled: from });
  const isCommitted = ledger.settled === to;
  const nowMs = host.clock.nowMs();
  const moved = changeMoved(ledger, {
    ...{ settled: from, lastKnownGood: from },
    ...(isCommitted ? { activatedAtMs: activatedAtCommit(host, ledger, { from: to, to: from }) } : {}),
  });
  return withBakesIn(host, moved, { generation: from, nowMs });
}

interface BakesIn {
  readonly generation: number;
  readonly nowMs: number;
  /** The generation before whose swap servers were asked; left out on a way back. */
  readonly contactAfter?: number;
}

/** A release that comes back, and never settled, bakes in full: it may settle, or lead to an older one. */
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

/** @returns the ledger that names another generation, or none, under each of the names that this backup has */
export function withBackup(ledger: Ledger, old: number, made: number | undefined): Ledger {
  const { previous, lastKnownGood } = ledger;
  return changeMoved(ledger, {
    previous: previous === old ? made : previous,
    lastKnownGood: lastKnownGood === old ? made : lastKnownGood,
  });
}

export function withoutPrevious(ledger: Ledger): Ledger {
  return changeMoved(ledger, { previous: undefined });
}

export function withLastKnownGood(ledger: Ledger, lastKnownGood: number | undefined): Ledger {
  return changeMoved(ledger, { lastKnownGood });
}

/** A release that comes back by a rollback is active since then, whenever its tree was made. */
function activatedAtCommit(
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

/** Their digests by bundle. */
export function digestsOf(releases: readonly NewRelease[]): ReleaseDigests {
  return Object.fromEntries(releases.map(({ bundle, manifest }) => [bundle, manifest.digest]));
}
