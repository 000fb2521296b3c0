// The door to a server's certificate: when it ends. Shakes hands and says nothing; whether it is to be believed, is the
// HTTP door's to judge.
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { connectTo } from './http-connector.js';
import type { Proxies } from './proxies.js';

/** @returns epoch milliseconds, or undefined when no certificate was seen in time */
export async function certificateEndsAtMs(place: {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly proxies: Proxies;
}): Promise<number | undefined> {
  const { host, port, timeoutMs, proxies } = place;
  const target = { protocol: 'https:', hostname: host, port: String(port) };
  const options = { timeoutMs, proxies };
  const raw = await connectTo(target, options).catch(() => undefined);
  if (raw === undefined) return undefined;
  return new Promise((resolve) => {
    // An expired one is what somebody wants to hear of; nothing is sent to whoever this is.
    // The protocol has no addresses as names of servers, and newer Nodes throw at one.
    const named = isIP(host) === 0 ? { servername: host } : {};
    const socket = connect({ socket: raw, ...named, rejectUnauthorized: false });
    const end = (endsAtMs: number | undefined): void => {
      socket.destroy();
      resolve(endsAtMs);
    };
    socket.setTimeout(timeoutMs, () => end(undefined));
    socket.on('error', () => end(undefined));
    socket.on('secureConnect', () => {
      const endsAtMs = Date.parse(socket.getPeerCertificate().valid_to ?? '');
      end(Number.isNaN(endsAtMs) ? undefined : endsAtMs);
    });
  });
}
