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
/** With a meaning of their own, or of which Node keeps the first alone, so that a second one would not be seen. */
const takenNames = new Set(
  (
    'age authorization connection content-length content-type cookie date etag expect expires from host if-match ' +
    'if-modified-since if-none-match if-unmodified-since last-modified location max-forwards origin proxy-authorization ' +
    'referer retry-after server set-cookie te trailer transfer-encoding upgrade user-agent'
  ).split(' '),
);

/** @returns the name in lower case; undefined for none that could name a person */
export function identityHeaderOf(text: string): string | undefined {
  const name = text.toLowerCase();
  const isTaken = takenNames.has(name) || /^(?:sec|access-control|content|signature)-/.test(name);
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
  if (typeof value !== 'string' || !personPattern.test(value)) return { refused: 'without a single name' };
  return { person: value };
}

function isFrom(from: BlockList, ip: string): boolean {
  const mapped = /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(ip);
  const address = mapped ? clientOf(ip) : ip.replace(/%.*$/, '');
  return isIP(address) !== 0 && from.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
