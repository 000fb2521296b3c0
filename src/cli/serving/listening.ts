// What the commands that serve have in common: flags of an address, of TLS and of places, and certificates
// that are read again at SIGHUP. Owns no HTTP.
import { isIP } from 'node:net';
import { InvalidArgumentError } from '#commander';
import { isWritError, toWritError, WritError } from '../../core/errors.js';
import { mergeReloads } from '../../platform/serve/merge-reloads.js';
import type { ServerManager } from '../../platform/serve/sd-ready.js';
import type { TlsFiles } from '../../platform/serve/tls-files.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { CommandContext } from '../console/command.js';
import { numberFlag, repeatedFlag } from '../console/flag-values.js';
import { type FlagValues, optional, preset } from '../console/flags.js';
import { logFlags } from '../console/log-flags.js';

/**
 * @param host the address by default, with `port`
 * @returns the definitions of the flags; `tlsFiles` reads two of them
 */
export function listeningFlags(host: string, port: number) {
  return {
    listen: preset(
      '--listen <host:port>',
      'address; port 0 means any free port',
      { host, port },
      listenFlag,
      `${host}:${port}`,
    ),
    tlsCert: optional('--tls-cert <file>', 'certificate with its chain, PEM; read again on SIGHUP'),
    tlsKey: optional('--tls-key <file>', 'its key, PEM'),
    perAddress: optional(
      '--per-address <n|off>',
      'connections that one address may have; 2000, at most half of all',
      perAddressFlag,
    ),
    ...logFlags,
    proxy: optional(
      '--proxy <address>',
      'address of a proxy with many clients, exempt from --per-address; may be repeated',
      repeatedFlag(addressFlag),
    ),
  };
}

type ListeningFlags = Pick<FlagValues<ReturnType<typeof listeningFlags>>, 'tlsCert' | 'tlsKey'>;

/**
 * @param text `HOST:PORT`, an IPv6 address in brackets, port 0 to 65535
 * @returns host without brackets, and port. @throws an error of commander for any other text
 */
export function listenFlag(text: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]/\s]+)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3] ?? Number.NaN);
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError('Give HOST:PORT, for example 127.0.0.1:8080 or [::1]:8080.');
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

/** @returns the address as a host is given it: one of all interfaces leads nowhere from there */
export function addressForHosts(url: string): string {
  return url.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=[:/]|$)/, '$1NAME-OF-THIS-MACHINE');
}

/** @param text a number of connections, or `off` */
function perAddressFlag(text: string): number {
  return text === 'off' ? Number.POSITIVE_INFINITY : numberFlag(1, 1_000_000)(text);
}

function addressFlag(text: string): string {
  if (isIP(text) !== 0) return text;
  throw new InvalidArgumentError('Give an IP address, for example 192.0.2.1 or 2001:db8::1.');
}

/**
 * @returns absolute paths of certificate and key; undefined for plain HTTP
 * @throws WritError USAGE where only one of the two is given
 */
export function tlsFiles({ tlsCert, tlsKey }: ListeningFlags, { at }: CommandContext): TlsFiles | undefined {
  if (tlsCert !== undefined && tlsKey !== undefined) return { certFile: at(tlsCert), keyFile: at(tlsKey) };
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  const missing = tlsCert === undefined ? '--tls-cert' : '--tls-key';
  throw new WritError('USAGE', `${missing} is missing: certificate and key go together`);
}

/** A renewed certificate must not need a restart, and half of a renewal must not end the server. */
export function reloadAtHangup(
  { server, manager, log }: { server: { reloadTls(): void }; manager: ServerManager; log: Logger },
  { surroundings, clock }: CommandContext,
): () => void {
  const reload = async (): Promise<void> => {
    try {
      await manager.reloading(() => server.reloadTls());
    } catch (error) {
      const { code, message, facts } = toWritError(error);
      // The message says why; only of what has no code is the place of use.
      const what = isWritError(error) ? facts : { err: error };
      log.error({ code, ...what }, `${message}; the old certificate stays in use`);
    }
  };
  const reloads = mergeReloads(reload, clock);
  surroundings.on('SIGHUP', reloads.request);
  return () => surroundings.off('SIGHUP', reloads.request);
}
