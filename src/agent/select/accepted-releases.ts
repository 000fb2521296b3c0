// The serials that this host has accepted, by bundle and channel, and which channel each bundle was last activated from:
// what age is judged by. Owns these members of the ledger; age-rules judges.
import { maxAcceptedSerials, type ReleaseInfo } from '../../core/release/release.js';
import { type AcceptedRelease, type Ledger, ledgerSection } from '../state/ledger.js';

const changeAccepted = ledgerSection('accepted', 'channels');

type Accepted = Pick<ReleaseInfo, 'bundle' | 'channel' | 'serial' | 'manifest'>;

/** @returns the ledger with a release noted as accepted for its bundle and channel. */
export function withAccepted(ledger: Ledger, { bundle, channel, serial, manifest }: Accepted): Ledger {
  const known = acceptedFor(ledger, bundle, channel);
  if (known.some((one) => one.serial === serial)) return ledger;
  const list = [...known, { serial, manifestDigest: manifest.digest }];
  const newest = list.sort((a, b) => a.serial - b.serial).slice(-maxAcceptedSerials);
  return changeAccepted(ledger, { accepted: { ...ledger.accepted, [channelKey(bundle, channel)]: newest } });
}

/** @returns what was accepted before, newest last */
export function acceptedFor(
  { accepted }: Ledger,
  bundle: string,
  channel: string,
): readonly AcceptedRelease[] {
  return accepted[channelKey(bundle, channel)] ?? [];
}

/** @returns the ledger in which what is active of this bundle is of this channel */
export function withChannel(
  ledger: Ledger,
  { bundle, channel }: Pick<ReleaseInfo, 'bundle' | 'channel'>,
): Ledger {
  return changeAccepted(ledger, { channels: { ...ledger.channels, [bundle]: channel } });
}

function channelKey(bundle: string, channel: string): string {
  return `${bundle}/${channel}`;
}
