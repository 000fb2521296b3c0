// `writ serve`: flags to a running server, its address on stdout, and a clean end at SIGTERM.
// Owns no HTTP and signs nothing itself; of --keys only the two online keys are read.
import { once } from 'node:events';
import { isIP } from 'node:net';
import { InvalidArgumentError } from '#commander';
import { toWritError, WritError } from '../../../core/errors.js';
import { createBusyLog, type Logger } from '../../../platform/telemetry/log.js';
import { openNotifier } from '../../../platform/telemetry/sd-notify.js';
import { mergeReloads } from '../../../platform/serve/merge-reloads.js';
import type { OnlineSigner } from '../../../server/resign/resigner.js';
import { notifyManagerOfServer, type ServerManager } from '../../../platform/serve/sd-ready.js';
import { type RunningServer, requireRepository, startServer } from '../../../server/server.js';
import type { TlsFiles } from '../../../platform/serve/tls-files.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { numberFlag, repeatedFlag } from '../../console/flag-values.js';
import { type CommonFlags, type FlagValues, optional, preset } from '../../console/flags.js';
import { passphraseFlags, passphrasesFor } from '../../repository/passphrase.js';
import { repositoryFlag } from '../../repository/repository-flags.js';

const address = { host: '127.0.0.1', port: 8080 };
const flags = {
  repository: repositoryFlag,
  listen: preset(
    '--listen <host:port>',
    'address; port 0 is any free one',
    address,
    listenFlag,
    '127.0.0.1:8080',
  ),
  keys: optional(
    '--keys <dir>',
    'directory with the snapshot and timestamp keys: re-signs before they expire',
  ),
  tlsCert: optional('--tls-cert <file>', 'certificate with its chain, PEM; read again at SIGHUP'),
  tlsKey: optional('--tls-key <file>', 'its key, PEM'),
  perAddress: optional(
    '--per-address <n|off>',
    'connections that one address may hold; 2000, at most half of all',
    perAddressFlag,
  ),
  proxy: optional(
    '--proxy <address>',
    'address that brings many clients, and is not held to --per-address; may be repeated',
    repeatedFlag(addressFlag),
  ),
  ...passphraseFlags,
};
type ServeFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<ServeFlags> = {
  examples: [
    'writ serve --repository repo',
    'writ serve --repository repo --listen 0.0.0.0:443 --tls-cert server.crt --tls-key server.pem --keys online',
    'writ serve --repository repo --listen 10.0.0.5:8080 --proxy 10.0.0.2 --proxy 10.0.0.3',
  ],
  exitCodes: [
    '0  ended by SIGTERM or SIGINT, requests under way finished',
    '1  cannot listen on this address, or the online keys are missing or not opened',
    '2  usage, no repository, or a TLS certificate and key that are no pair',
  ],
  onSignal: 'drain',
  flags,
  run: async (_args, flags, context) => {
    const log = createBusyLog('writ-server', logLevel(flags));
    const tls = tlsFiles(flags, context);
    const signer = await onlineSigner(flags, context);
    const server = await startServer({
      repository: context.at(flags.repository),
      ...flags.listen,
      ...(tls === undefined ? {} : { tls }),
      ...(signer === undefined ? {} : { signer }),
      ...(flags.perAddress === undefined ? {} : { limits: { maxConnectionsPerAddress: flags.perAddress } }),
      proxies: flags.proxy ?? [],
      log,
      clock: context.clock,
      processMetrics: 'include',
    });
    const manager = notifyManagerOfServer(openNotifier({ ...context, log, pid: process.pid }), context.clock);
    const stopReloading = reloadAtHangup({ server, manager, log }, context);
    context.announce(listening(server.url));
    manager.listening(server.url);
    if (!context.signal.aborted) await once(context.signal, 'abort');
    manager.stopping();
    await server.close();
    stopReloading();
    await manager.end();
    const lines = [`STOPPED ${server.url}: requests under way were finished`];
    return { outcome: 'stopped', details: { url: server.url }, lines };
  },
};

/** @param text `HOST:PORT`, an IPv6 address in brackets; exported for its test. */
export function listenFlag(text: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]/\s]+)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3] ?? Number.NaN);
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError('HOST:PORT is wanted, as 127.0.0.1:8080 or [::1]:8080.');
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

/** @param text a number of connections, or `off` */
function perAddressFlag(text: string): number {
  return text === 'off' ? Number.POSITIVE_INFINITY : numberFlag(1, 1_000_000)(text);
}

function addressFlag(text: string): string {
  if (isIP(text) !== 0) return text;
  throw new InvalidArgumentError('An IP address is wanted, as 192.0.2.1 or 2001:db8::1.');
}

function tlsFiles({ tlsCert, tlsKey }: ServeFlags, { at }: CommandContext): TlsFiles | undefined {
  if (tlsCert !== undefined && tlsKey !== undefined) return { certFile: at(tlsCert), keyFile: at(tlsKey) };
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  const missing = tlsCert === undefined ? '--tls-cert' : '--tls-key';
  throw new WritError('USAGE', `${missing} is missing: certificate and key go together`);
}

async function onlineSigner(flags: ServeFlags, context: CommandContext): Promise<OnlineSigner | undefined> {
  if (flags.keys === undefined) return undefined;
  const repository = context.at(flags.repository);
  requireRepository(repository);
  const keys = { path: context.at(flags.keys), passphrases: passphrasesFor(flags, context) };
  // Without --keys no code that can sign is even loaded.
  const { createOnlineSigner } = await import('../../repository/online-signer.js');
  return createOnlineSigner(repository, keys, context.clock);
}

function logLevel({ quiet, verbose }: CommonFlags): 'warn' | 'debug' | 'info' {
  if (quiet) return 'warn';
  return verbose ? 'debug' : 'info';
}

/** A renewed certificate must not need a restart, and half of a renewal must not end the server. */
function reloadAtHangup(
  { server, manager, log }: { server: RunningServer; manager: ServerManager; log: Logger },
  { surroundings, clock }: CommandContext,
): () => void {
  const reload = async (): Promise<void> => {
    try {
      await manager.reloading(() => server.reloadTls());
    } catch (error) {
      const { code, message } = toWritError(error);
      log.error({ code, err: error }, `${message}; the old one stays in use`);
    }
  };
  const reloads = mergeReloads(reload, clock);
  surroundings.on('SIGHUP', reloads.request);
  return () => surroundings.off('SIGHUP', reloads.request);
}

function listening(url: string): Answer {
  return {
    type: 'serve.listening',
    outcome: 'listening',
    details: { url },
    lines: [`LISTENING ${url}`],
    next: `set \`repository: ${url}/\` in the agent's configuration`,
  };
}
