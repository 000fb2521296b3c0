// Opens a repository on a web server or in a directory. A source sends bytes under a bound and verifies nothing; it knows no roles
// and keys.
import { fileURLToPath } from 'node:url';
import { WritError } from '../../core/errors.js';
import { defaultTransportLimits, type TransportLimits } from '../../core/limits.js';
import type { Proxies } from '../../platform/net/proxies.js';
import type { Clock } from '../../platform/time/clock.js';
import { openFileSource } from './file-source.js';
import { openHttpSource } from './http-source.js';
import type { RepositorySource } from './source.js';

export interface SourceOptions {
  readonly clock: Clock;
  /** Version of Writ, for the User-Agent. */
  readonly version: string;
  readonly limits?: TransportLimits;
  /** PEM of the certificate authorities that replace those of the system; https only. */
  readonly ca?: string;
  /** Hosts that redirects may lead to, over https; see HttpOptions. */
  readonly redirects?: readonly string[];
  /** The proxies of the environment by default. */
  readonly proxies?: Proxies;
}

/**
 * @param location `http://`, `https://` or `file:///` URL of the repository; a slash at its end may be missing
 * @throws WritError CONFIG_INVALID for any other text, or for a URL with user, query or fragment
 */
export function openRepositorySource(location: string, options: SourceOptions): RepositorySource {
  const url = parseLocation(location);
  if (url.protocol === 'file:') return openFileSource(fileURLToPath(url), url.href);
  const { limits = defaultTransportLimits, ...rest } = options;
  return openHttpSource(url, { ...rest, limits });
}

function parseLocation(location: string): URL {
  const url = URL.canParse(location) ? new URL(location) : undefined;
  const known = url !== undefined && ['http:', 'https:', 'file:'].includes(url.protocol);
  // No file can have a name with an encoded slash.
  const isFile = url?.protocol === 'file:';
  const odd = isFile && (url?.host !== '' || /%2f|%00/i.test(url?.pathname ?? ''));
  // A password in a URL would be logged; a query would be lost when a path is appended.
  const extra = url === undefined ? '' : `${url.username}${url.password}${url.search}${url.hash}`;
  if (!known || extra !== '' || odd) {
    throw new WritError('CONFIG_INVALID', 'the repository is not a plain http, https or file URL', {
      facts: { expected: 'https://host/path/ or file:///path/' },
      hint: 'Write https://host/path/ or file:///path/, without user, query or fragment.',
    });
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}
