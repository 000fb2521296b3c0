// Where a redirect may lead. On the same host and scheme a server may call its files what it likes; anywhere else
// only a configured host, over https, or whoever answers could send a host into its own private network. Pure.
import { maxRedirects } from '../../core/limits.js';

export interface RedirectRules {
  /** Redirects followed so far for this request. */
  readonly hops: number;
  /** Hosts, with a port where it is not 443. */
  readonly allowed: readonly string[];
}

export type RedirectVerdict =
  | { readonly kind: 'follow'; readonly url: string }
  | { readonly kind: 'refuse'; readonly reason: string };

const maxUrlCharacters = 4000;

/**
 * @param from absolute URL that answered with a redirect
 * @param location its Location, as it came
 */
export function judgeRedirect(
  from: string,
  location: string | undefined,
  { hops, allowed }: RedirectRules,
): RedirectVerdict {
  if (hops >= maxRedirects) return refuse(`more than ${maxRedirects} times`);
  if (location === undefined || location.length > maxUrlCharacters || !URL.canParse(location, from))
    return refuse('to no place');
  const here = new URL(from);
  const there = new URL(location, from);
  if (there.username !== '' || there.password !== '') return refuse('to a place with a name or password');
  const follow: RedirectVerdict = { kind: 'follow', url: `${there.origin}${there.pathname}${there.search}` };
  if (there.origin === here.origin) return follow;
  // To plain http never, whatever is configured: who listens there would learn and choose what a host gets.
  if (there.protocol !== 'https:') return refuse('to another scheme or host');
  const isAllowed = allowed.some((host) => new URL(`https://${host}`).host === there.host);
  return isAllowed ? follow : refuse('to a host that is not in `redirects`');
}

function refuse(reason: string): RedirectVerdict {
  return { kind: 'refuse', reason };
}
