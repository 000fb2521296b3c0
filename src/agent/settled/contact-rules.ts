// When the server is asked after a swap, and what follows from its silence. Pure. A release that cuts a host off from its server
// can be repaired by no server, so the host has to find it by itself. docs/adr/0052-contact.md has the reasons.

import { WritError } from '../../core/errors.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import type { BakeContact, Ledger, LostContact } from '../state/ledger.js';

/** After the swap. */
const attemptsAtMs = [5000, 15_000, 30_000, 60_000];
/** Contact that returns so soon after the restore was lost by the release. */
const verdictMs = 60_000;
const gapAfterRestoreMs = 5000;
const gapWhileAwayMs = 30_000;
/** The server was away: the release becomes active again after so long at the latest. */
const awayMs = [600_000, 1_200_000, 2_400_000];
/** An agent that asks does so more often. */
const abandonedMs = 120_000;

export type ContactStep =
  | { readonly kind: 'ask' }
  | { readonly kind: 'wait'; readonly untilMs: number }
  /** Each attempt has failed. */
  | { readonly kind: 'lost' };

/** @returns the next step for a release in its bake time with a server that has not answered since the swap */
export function nextAttempt(
  { failed, lastAtMs }: BakeContact,
  { startedAtMs, nowMs }: { readonly startedAtMs: number; readonly nowMs: number },
): ContactStep {
  const offsetMs = attemptsAtMs[failed];
  if (offsetMs === undefined) return { kind: 'lost' };
  const gapMs = offsetMs - (attemptsAtMs[failed - 1] ?? 0);
  // An agent that was away makes up for its attempts, but not all at one moment. A clock may have been set back.
  const afterLastMs = lastAtMs === undefined || lastAtMs > nowMs ? 0 : lastAtMs + gapMs / 2;
  const untilMs = Math.max(Math.min(startedAtMs, nowMs) + offsetMs, afterLastMs);
  return nowMs >= untilMs ? { kind: 'ask' } : { kind: 'wait', untilMs };
}

/** @returns when a release that failed by its contact, and stays active for want of another, is asked for again */
export function nextLateAttempt({ lastAtMs }: BakeContact, nowMs: number): ContactStep {
  return askAfter(lastAtMs, gapWhileAwayMs, nowMs);
}

export type LostStep =
  | Exclude<ContactStep, { kind: 'lost' }>
  /** Contact did not return with the release before: the server is away. */
  | { readonly kind: 'away' }
  /** The server has been away for long enough: the release becomes active again without it. */
  | { readonly kind: 'reactivate' }
  | { readonly kind: 'none' };

/** @returns what is to be done about a release that was taken back because contact was lost */
export function nextLostStep(lost: LostContact, nowMs: number): LostStep {
  const { state, atMs, lastAtMs } = lost;
  if (state === 'returned' || state === 'held') return { kind: 'none' };
  const elapsedMs = Math.max(0, nowMs - atMs);
  if (state === 'asking') {
    return elapsedMs > verdictMs ? { kind: 'away' } : askAfter(lastAtMs, gapAfterRestoreMs, nowMs);
  }
  if (elapsedMs >= awayLimitMs(lost)) return { kind: 'reactivate' };
  return askAfter(lastAtMs, gapWhileAwayMs, nowMs);
}

/** @returns milliseconds after the restore at which the release becomes active again without the server */
export function awayLimitMs({ tries }: Pick<LostContact, 'tries'>): number {
  return awayMs[tries] ?? Number.POSITIVE_INFINITY;
}

function askAfter(
  lastAtMs: number | undefined,
  gapMs: number,
  nowMs: number,
): Exclude<ContactStep, { kind: 'lost' }> {
  const untilMs = lastAtMs === undefined || lastAtMs > nowMs ? nowMs : lastAtMs + gapMs;
  return untilMs <= nowMs ? { kind: 'ask' } : { kind: 'wait', untilMs };
}

/** @param askedAtMs when the attempt began. @returns the release after an attempt */
export function lostAfterAttempt(
  lost: LostContact,
  { isReached, askedAtMs }: { readonly isReached: boolean; readonly askedAtMs: number },
): LostContact {
  const asked = { ...lost, lastAtMs: askedAtMs };
  if (!isReached) return asked;
  // Without contact before the swap, the server may have come back at this moment by chance.
  const isVerdict = lost.state === 'asking' && lost.hadContact && askedAtMs - lost.atMs <= verdictMs;
  return { ...asked, state: isVerdict ? 'held' : 'returned' };
}

/**
 * @param hadContact whether the server answered before the swap
 * @param lost the record of this release, if a lost contact caused its automatic rollback before
 * @returns the attempts of a release that becomes active now; undefined where nothing may be concluded from them
 */
export function startContact(hadContact: boolean, lost: LostContact | undefined): BakeContact | undefined {
  // After a verdict only a person activates the release again, and its attempts are counted again.
  if (lost === undefined || lost.state === 'held')
    return hadContact ? { failed: 0, hadContact, tries: 0 } : undefined;
  const tries = lost.tries + 1;
  return tries < awayMs.length ? { failed: 0, hadContact, tries } : undefined;
}

/** @returns true while an agent is asking: the bake time does not end before contact is decided */
export function isContactOpen(
  contact: BakeContact | undefined,
  { startedAtMs, nowMs }: { readonly startedAtMs: number; readonly nowMs: number },
): boolean {
  return contact !== undefined && nowMs - (contact.lastAtMs ?? startedAtMs) < abandonedMs;
}

export interface LostContactView {
  /** True while an agent runs: only an agent activates a release again by itself. */
  readonly isObserved: boolean;
  /** By bundle; left out: all that the ledger knows. */
  readonly lost?: readonly (readonly [string, LostContact])[];
}

/** @returns CONTACT_LOST for each that is kept out still; one that may become active again is a matter of the next cycle */
export function lostContactErrors(
  { lostContacts = {}, holds }: Pick<Ledger, 'lostContacts' | 'holds'>,
  { isObserved, lost = Object.entries(lostContacts) }: LostContactView,
): WritError[] {
  return lost.flatMap(([bundle, release]) => {
    const { serial, manifestDigest, state, atMs } = release;
    const isHeld = holds.some((one) => one.bundle === bundle && one.manifestDigest === manifestDigest);
    if (state === 'returned' || !isHeld) return [];
    const isAlone = !isObserved && state !== 'held';
    const untilMs = state === 'away' ? atMs + awayLimitMs(release) : undefined;
    const outlook = isAlone ? `serial ${serial} is held: ${aloneText}` : textOf(release, untilMs);
    const text = `contact lost after ${bundle} ${serial}; ${outlook}`;
    const facts = { bundle, serial, state, atMs, untilMs };
    return [new WritError('CONTACT_LOST', text, { facts, ...(isAlone ? { hint: aloneHint } : {}) })];
  });
}

const aloneText = 'no agent runs that would activate it again';
const aloneHint =
  '`writ resume` ends the hold, then `writ pull` takes the release again. An agent that is started does so once the server answers.';

function textOf({ state, serial }: LostContact, untilMs: number | undefined): string {
  if (state === 'held') return `serial ${serial} is held until a newer release`;
  if (untilMs === undefined) return 'whether it returns with the release before is not known yet';
  const until = utcTimeText(untilMs);
  return `the server is away, so serial ${serial} becomes active again at the first contact, at the latest at ${until}`;
}
