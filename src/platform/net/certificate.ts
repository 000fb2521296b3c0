// Reads the expiry time of a server certificate. Does a TLS handshake and sends no data, so it accepts any certificate. The
// HTTP client verifies certificates.
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { connectTo } from './http-connector.js';
import type { Proxies } from './proxies.js';

/** @returns the expiry of the certificate in epoch milliseconds; undefined if none was received in time */
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
    // An expired certificate must be reported too, so it is not rejected; no data is sent to the server.
    // TLS has no addresses as server names, and newer versions of Node throw at one.
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
