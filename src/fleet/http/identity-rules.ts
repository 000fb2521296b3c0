// Whether a request names a person by the word of a proxy: the header counts from the addresses that were named, and from no
// other. Pure. Never guesses: a header that is there twice, or beside a credential, names nobody, since it is not known who wrote it.
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Role } from '../../core/fleet/answers.js';
import { clientOf } from '../../platform/serve/admission.js';

/** Whose word is taken for who a person is, and what such a person may. */
export interface IdentityRule {
  /** In lower case. */
  readonly header: string;
  readonly from: BlockList;
  readonly role: Role;
}

/** Nobody: the request has no such header, or comes from elsewhere. */
export type Identity = { readonly person: string } | { readonly refused: string } | undefined;

const maxNetworks = 32;
/** A network with more addresses than these is a whole internet, not somebody's proxies. */
const leastPrefix = { ipv4: 8, ipv6: 16 };
/** No comma and no space: headers that are there twice arrive joined by both. */
const personPattern = /^[\w.@+:|/\\=-]{1,128}$/;
/**
 * Headers with a meaning of their own: browsers and proxies send them with every request, so each client of the proxy would be signed
 * in. Node keeps only the first of some of them, so a second one would not be seen.
 */
const takenNames = new Set(
  (
    'accept age authorization baggage cache-control connection cookie date depth destination dnt dpop early-data etag expect ' +
    'expires forwarded from host keep-alive last-modified link location max-forwards origin overwrite pragma prefer priority ' +
    'proxy-connection range referer retry-after save-data server set-cookie signature te timeout traceparent tracestate trailer ' +
    'transfer-encoding upgrade upgrade-insecure-requests user-agent via warning x-csrf-token x-requested-with x-xsrf-token'
  ).split(' '),
);
const takenPrefixes =
  /^(?:accept|access-control|alt|b3|cdn|content|downlink|if|proxy|sec|signature|want|x-amz|x-amzn|x-b3|x-cache|x-envoy|x-http-method|x-original)-/;
/** Facts about the connection or the request, which proxies add for each client. */
const takenEndings =
  /(?:^|-)(?:ip|for|host|port|proto|protocol|scheme|server|prefix|path|uri|url|method|country|ipcountry|ray|ssl|trace|(?:request|correlation|trace|span)-id|addr|address)$/;

/** @returns the name in lower case; undefined for none that could name a person */
export function identityHeaderOf(text: string): string | undefined {
  const name = text.toLowerCase();
  const isTaken = takenNames.has(name) || takenPrefixes.test(name) || takenEndings.test(name);
  return /^[a-z][a-z0-9-]{0,63}$/.test(name) && !isTaken ? name : undefined;
}

/**
 * @param networks each an address, or a network as 10.0.0.0/24
 * @returns undefined where one is neither, is too wide, or where there are none or more than 32
 */
export function identityNetworks(networks: readonly string[]): BlockList | undefined {
  if (networks.length === 0 || networks.length > maxNetworks) return undefined;
  const list = new BlockList();
  return networks.every((network) => addNetwork(list, network)) ? list : undefined;
}

function addNetwork(list: BlockList, network: string): boolean {
  const [, address = '', length] = /^([0-9A-Fa-f:.]{2,45})(?:\/([0-9]{1,3}))?$/.exec(network) ?? [];
  // An IPv4 address within an IPv6 one is compared as IPv4, so that a network of such would never match.
  if (isIP(address) === 0 || /^::ffff:/i.test(address)) return false;
  const [family, whole] = isIPv6(address) ? (['ipv6', 128] as const) : (['ipv4', 32] as const);
  const prefix = length === undefined ? whole : Number(length);
  if (prefix < leastPrefix[family] || prefix > whole) return false;
  list.addSubnet(address, prefix, family);
  return true;
}

/**
 * @param hasCredential whether a bearer token or a session came along
 * @returns who asks by a proxy's word, or why that word is not taken
 */
export function identityOf(
  { header, from }: IdentityRule,
  { headers, ip }: { readonly headers: IncomingHttpHeaders; readonly ip: string },
  hasCredential: boolean,
): Identity {
  const value = headers[header];
  if (value === undefined || !isFrom(from, ip)) return undefined;
  if (hasCredential) return { refused: 'with a token or a session' };
  // An address names a connection: with it, a header for addresses would sign in each client.
  const isPerson = typeof value === 'string' && personPattern.test(value) && isIP(value) === 0;
  if (!isPerson) return { refused: 'without a single name' };
  return { person: value };
}

function isFrom(from: BlockList, ip: string): boolean {
  const mapped = /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(ip);
  const address = mapped ? clientOf(ip) : ip.replace(/%.*$/, '');
  return isIP(address) !== 0 && from.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
