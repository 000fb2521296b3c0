// Reads the person that a proxy names in a header of a request. The header counts only from the configured addresses. Pure. A header
// that occurs twice, or beside a credential, names no person, because its sender may be the client.
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Role } from '../../core/fleet/answers.js';
import { clientOf } from '../../platform/serve/admission.js';

/** The header in which a proxy names a person, the addresses of the proxy, and the role of each such person. */
export interface IdentityRule {
  /** In lower case. */
  readonly header: string;
  readonly from: BlockList;
  readonly role: Role;
}

/** Undefined: the request has no such header, or comes from another address. */
export type Identity = { readonly person: string } | { readonly refused: string } | undefined;

const maxNetworks = 32;
/** The widest network: one with more addresses is not a set of proxies. */
const leastPrefix = { ipv4: 8, ipv6: 16 };
/** Without comma and space, which join a header that occurs twice. */
const personPattern = /^[\w.@+:|/\\=-]{1,128}$/;
/**
 * Headers with a meaning of their own: browsers and proxies send them with every request, so each client of the proxy would be signed
 * in. Node keeps only the first of some of them, so a second one would not be seen.
 */
const reservedNames = new Set(
  (
    'accept age authorization baggage cache-control connection cookie date depth destination dnt dpop early-data etag expect ' +
    'expires forwarded from host keep-alive last-modified link location max-forwards origin overwrite pragma prefer priority ' +
    'proxy-connection range referer referrer-policy retry-after save-data server set-cookie signature te timeout traceparent tracestate trailer ' +
    'transfer-encoding upgrade upgrade-insecure-requests user-agent via warning x-csrf-token x-requested-with x-xsrf-token'
  ).split(' '),
);
const reservedPrefixes =
  /^(?:accept|access-control|alt|b3|cdn|content|downlink|if|proxy|sec|signature|want|x-amz|x-amzn|x-b3|x-cache|x-envoy|x-accel|x-content|x-http-method|x-original|writ)-/;
/** Facts about the connection or the request, which proxies add for each client. */
const reservedEndings =
  /(?:^|-)(?:ip|for|host|port|proto|protocol|scheme|server|prefix|path|uri|url|method|country|ipcountry|ray|ssl|trace|(?:request|correlation|trace|span)-id|addr|address)$/;

/**
 * @returns the name in lower case, at most 64 of a-z 0-9 -; undefined for another form, and for a header that cannot name a
 *   person
 */
export function parseIdentityHeader(text: string): string | undefined {
  const name = text.toLowerCase();
  const isTaken = reservedNames.has(name) || reservedPrefixes.test(name) || reservedEndings.test(name);
  return /^[a-z][a-z0-9-]{0,63}$/.test(name) && !isTaken ? name : undefined;
}

/**
 * @param networks each an address, or a network as 10.0.0.0/24
 * @returns undefined where an element is neither or is too wide, for an empty list, and for more than 32
 */
export function parseIdentityNetworks(networks: readonly string[]): BlockList | undefined {
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
 * @param hasCredential whether the request also has a bearer token or a session
 * @returns person: the name in the header; refused: the reason, for a credential beside it, or no single name; undefined without
 *   the header, or from an address that the rule does not list
 */
export function readIdentity(
  { header, from }: IdentityRule,
  { headers, ip }: { readonly headers: IncomingHttpHeaders; readonly ip: string },
  hasCredential: boolean,
): Identity {
  const value = headers[header];
  if (value === undefined || !isFrom(from, ip)) return undefined;
  if (hasCredential) return { refused: 'with a token or a session' };
  // An IP address does not name a person: a header for addresses would authenticate each client of the proxy.
  const isPerson = typeof value === 'string' && personPattern.test(value) && isIP(value) === 0;
  if (!isPerson) return { refused: 'without a single name' };
  return { person: value };
}

function isFrom(from: BlockList, ip: string): boolean {
  const mapped = /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(ip);
  const address = mapped ? clientOf(ip) : ip.replace(/%.*$/, '');
  return isIP(address) !== 0 && from.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
