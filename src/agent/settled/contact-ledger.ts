// The members of the ledger about contact with the server: which server answered before a swap, and which releases were taken
// back because none answered after it. Computes ledgers; writes none.
import { type AgentConfig, bakeOf } from '../../core/config/config.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import {
  type AcceptedRelease,
  type BakeContact,
  type ContactBefore,
  type Ledger,
  type LostContact,
  ledgerSection,
} from '../state/ledger.js';
import { isSameRelease } from './bake-rules.js';
import { startContact } from './contact-rules.js';

const changeContact = ledgerSection('contactBefore', 'lostContacts');

/** @returns the ledger with the server that answered before the swap; undefined removes it */
export function withContactBefore(ledger: Ledger, contactBefore: ContactBefore | undefined): Ledger {
  return changeContact(ledger, { contactBefore });
}

/**
 * Notes releases that were taken back because no server answered after their swap. Throws nothing.
 * @param lost by bundle, replaces the earlier entry of that bundle; the entries of other bundles stay. `{}` changes none
 * @returns the changed ledger. The caller writes it
 */
export function withLostContacts(ledger: Ledger, lost: Readonly<Record<string, LostContact>>): Ledger {
  return changeContact(ledger, { lostContacts: { ...ledger.lostContacts, ...lost } });
}

/** @returns the ledger in which contact is awaited from this time on for those of these releases that have lost it */
export function withLostSince(ledger: Ledger, releases: readonly ReleaseInfo[], atMs: number): Ledger {
  const lost = releases.flatMap(({ bundle, serial, manifest }): [string, LostContact][] => {
    const known = ledger.lostContacts?.[bundle];
    const isSame = known !== undefined && isSameRelease(known, { serial, manifestDigest: manifest.digest });
    return isSame && known.state === 'asking' ? [[bundle, { ...known, atMs }]] : [];
  });
  return lost.length === 0 ? ledger : withLostContacts(ledger, Object.fromEntries(lost));
}

/** @returns the ledger without what these releases, or newer ones, have ended */
export function withoutLostUpTo(ledger: Ledger, active: ReadonlyMap<string, AcceptedRelease>): Ledger {
  if (ledger.lostContacts === undefined) return ledger;
  const left = Object.entries(ledger.lostContacts).filter(([bundle, { serial }]) => {
    return serial > (active.get(bundle)?.serial ?? 0);
  });
  return changeContact(ledger, { lostContacts: left.length === 0 ? undefined : Object.fromEntries(left) });
}

/** @returns the attempts of a release that becomes active with this generation; undefined where contact is not watched */
export function contactAtStart(
  { contactBefore, lostContacts = {} }: Ledger,
  config: Pick<AgentConfig, 'bundles' | 'together'>,
  { bundle, release, generation }: ContactStart,
): BakeContact | undefined {
  const { contact } = bakeOf(config, bundle);
  if (contact === undefined) return undefined;
  const reached = contactBefore?.generation === generation ? contactBefore.reached : [];
  const lost = lostContacts[bundle];
  const isSame = lost !== undefined && isSameRelease(lost, release);
  return startContact(reached.includes(contact), isSame ? lost : undefined);
}

export interface ContactStart {
  readonly bundle: string;
  readonly release: AcceptedRelease;
  readonly generation: number;
}
