// Finds the offer of the repository for each bundle in the trusted metadata. Downloads delegated roles that are not stored yet;
// decides nothing.
import { isWritError, type WritError } from '../../core/errors.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';

/** The newest release of a channel; undefined where the repository does not list the channel, an error where that is unknown. */
export type Offer = SignedTarget | WritError | undefined;

/** By bundle. */
export type Offers = ReadonlyMap<string, Offer>;

export interface FindOptions {
  readonly signal: AbortSignal;
  /** Called for each mirror that failed before another one sent a delegated role. */
  readonly onMirrorFailed: (failure: MirrorFailure) => void;
}

/**
 * An entry that cannot be read, or a delegated role that has expired or cannot be downloaded, is an error only of the bundles that
 * depend on it.
 */
export async function findOffers(
  { config, client }: Pick<Host, 'config' | 'client'>,
  options: FindOptions,
): Promise<Offers> {
  const offers = new Map<string, Offer>();
  // In turn, because bundles of one team share the delegated metadata that the first of them downloads.
  for (const { name, channel } of config.bundles) {
    try {
      offers.set(name, await client.target(name, channel, options));
    } catch (error) {
      if (!isWritError(error)) throw error;
      offers.set(name, error);
    }
  }
  return offers;
}
