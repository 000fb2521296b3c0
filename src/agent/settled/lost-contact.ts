// What is reported of releases that were taken back because contact with the server was lost. Pure.
import { WritError } from '../../core/errors.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import type { Ledger, LostContact } from '../state/ledger.js';
import { awayLimitMs } from './contact-rules.js';

/**
 * @param lost by bundle; left out: all that the ledger knows
 * @returns CONTACT_LOST for each that is kept out still; one that may become active again is a matter of the next cycle
 */
export function lostContactErrors(
  { lostContacts = {}, holds }: Pick<Ledger, 'lostContacts' | 'holds'>,
  lost: readonly (readonly [string, LostContact])[] = Object.entries(lostContacts),
): WritError[] {
  return lost.flatMap(([bundle, release]) => {
    const { serial, manifestDigest, state, atMs } = release;
    const isHeld = holds.some((one) => one.bundle === bundle && one.manifestDigest === manifestDigest);
    if (state === 'returned' || !isHeld) return [];
    const untilMs = state === 'away' ? atMs + awayLimitMs(release) : undefined;
    const text = `contact lost after ${bundle} ${serial}; ${textOf(release, untilMs)}`;
    return [new WritError('CONTACT_LOST', text, { facts: { bundle, serial, state, atMs, untilMs } })];
  });
}

function textOf({ state, serial }: LostContact, untilMs: number | undefined): string {
  if (state === 'held') return `serial ${serial} is held until a newer release`;
  if (untilMs === undefined) return 'whether it returns with the release before is not known yet';
  const until = utcTimeText(untilMs);
  return `the server is away, so serial ${serial} becomes active again at the first contact, at the latest at ${until}`;
}
