// The reports of releases that were taken back because contact with the server was lost. Pure.
import { WritError } from '../../core/errors.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import type { Ledger, LostContact } from '../state/ledger.js';
import { awayLimitMs } from './contact-rules.js';

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
