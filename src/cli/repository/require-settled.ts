// `writ promote --require-settled`: queries a fleet server for the share of the channel's hosts on which the release
// settled. The reports of hosts can only delay a promotion; they sign nothing.
import { WritError } from '../../core/errors.js';
import { judgeSettledShare } from '../../core/fleet/wait-verdict.js';
import { type Digest, digestHex } from '../../core/names.js';
import type { CommandContext } from '../console/command.js';
import { shareFlag } from '../console/flag-values.js';
import { type FlagValues, optional } from '../console/flags.js';
import { fleetClientFlags, withFleetClient } from '../fleet/open-fleet-client.js';
import { clonedTexts, describeSettledCounts, requireSettledCounts } from '../fleet/settled-counts.js';

export const settledFlags = {
  requireSettled: optional(
    '--require-settled <percent>',
    'share of the hosts of --from on which it must have outlived its bake time; needs --fleet',
    shareFlag,
  ),
  fleet: optional('--fleet <url>', 'address of the fleet server to ask').env('WRIT_FLEET_URL'),
  tokenFile: fleetClientFlags.tokenFile,
  ca: fleetClientFlags.ca,
};
type SettledFlags = FlagValues<typeof settledFlags>;

export const settledExitCode =
  '3  too few hosts have outlived its bake time (RELEASE_NOT_SETTLED); nothing was signed or published';

export interface PromotedRelease {
  /** The digest of the promoted manifest. */
  readonly manifest: Digest;
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
}

/**
 * @returns done of `of` hosts, and how many were needed; undefined without --require-settled
 * @throws WritError RELEASE_NOT_SETTLED, FLEET_TOO_OLD, USAGE, and errors of the fleet server
 */
export async function requireSettledShare(
  flags: SettledFlags,
  release: PromotedRelease,
  context: CommandContext,
): Promise<{ readonly of: number; readonly done: number; readonly needed: number } | undefined> {
  const { requireSettled: sharePpm, fleet: url, tokenFile, ca } = flags;
  if (sharePpm === undefined) return undefined;
  if (url === undefined)
    throw new WritError('USAGE', '--require-settled needs --fleet: the hosts report to that server');
  const clientFlags = { url, tokenFile, ca, store: undefined, storeFile: undefined };
  const { manifest, ...waited } = release;
  const facts = await withFleetClient(clientFlags, context, (fleet) => fleet.wait(waited));
  const settled = requireSettledCounts(facts);
  // Hosts of another repository, or false reports: none of these hosts has the release that is promoted.
  const isOther = facts.manifest !== undefined && facts.manifest !== digestHex(manifest);
  const counted = isOther ? { ...facts, settled: { ...settled, confirmed: 0, notified: 0 } } : facts;
  const { isReached, ...share } = judgeSettledShare(counted, sharePpm);
  const { bundle, serial, channel } = release;
  const text = `${share.done} of ${share.of} hosts of ${channel} have ${bundle} ${serial} and outlived its bake time, ${share.needed} needed`;
  if (isReached) {
    context.reporter.finish('hosts', text);
    return share;
  }
  const why = [
    ...(facts.withdrawn === true ? ['it was withdrawn'] : []),
    ...(isOther ? ['hosts report another release of this serial'] : describeSettledCounts(settled)),
    ...clonedTexts(facts),
    ...(facts.refused > 0 ? [`${facts.refused} refused`] : []),
    ...(facts.silent > 0 ? [`${facts.silent} had it and are silent`] : []),
  ];
  throw new WritError('RELEASE_NOT_SETTLED', [text, ...why].join('; '), {
    facts: { bundle, channel, serial, expected: share.needed, actual: share.done, of: share.of },
    hint: `writ fleet wait ${bundle} ${serial} --channel ${channel} --settled`,
  });
}
