// Bounds the connections of one address, so that one client leaves connections for the others. Does not count addresses that stand
// for many clients: loopback, and configured proxies. Owns the counts; reads no data.
import { BlockList, isIPv6, type Socket } from 'node:net';

export interface Admission {
  /** @returns whether the connection is accepted; an accepted one is counted until it closes */
  admits(socket: Socket): boolean;
}

/**
 * @param maxPerAddress connections that one client may have at the same time; an IPv6 client is its first 64 bits
 * @param uncounted addresses that are always admitted and never counted
 * @returns an admission without counts. `admits` is false for a client that has reached its maximum; the caller closes that
 *   socket, and it is not counted. A socket without an address counts as the client ''. Throws nothing.
 */
export function createAdmission(maxPerAddress: number, uncounted: BlockList): Admission {
  const counts = new Map<string, number>();
  return {
    admits: (socket) => {
      const { remoteAddress = '', remoteFamily } = socket;
      if (uncounted.check(remoteAddress, remoteFamily === 'IPv6' ? 'ipv6' : 'ipv4')) return true;
      const client = clientOf(remoteAddress);
      const count = counts.get(client) ?? 0;
      if (count >= maxPerAddress) return false;
      counts.set(client, count + 1);
      socket.once('close', () => {
        const left = (counts.get(client) ?? 1) - 1;
        if (left === 0) counts.delete(client);
        else counts.set(client, left);
      });
      return true;
    },
  };
}

/**
 * @param proxies addresses, without port or prefix, that each forward connections of many clients
 * @returns a list of 127.0.0.0/8, ::1 and the proxies; without proxies only of loopback. Throws an error of Node for a text that
 *   is not an address.
 */
export function uncountedAddresses(proxies: readonly string[]): BlockList {
  const list = new BlockList();
  list.addSubnet('127.0.0.0', 8, 'ipv4');
  list.addAddress('::1', 'ipv6');
  for (const proxy of proxies) list.addAddress(proxy, isIPv6(proxy) ? 'ipv6' : 'ipv4');
  return list;
}

/** Identifies the client of an address. For IPv6 by the first 64 bits, because one client can use all addresses below them. */
export function clientOf(address: string): string {
  const plain = address.replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain);
  if (mapped?.[1] !== undefined) return mapped[1];
  const [before = '', after] = plain.split('::');
  const groups = before === '' ? [] : before.split(':');
  const behind = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : 8 - groups.length - behind.length;
  return [...groups, ...Array<string>(zeros).fill('0'), ...behind].slice(0, 4).join(':');
}
