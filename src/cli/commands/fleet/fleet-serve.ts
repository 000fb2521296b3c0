// `writ fleet serve`: flags to a running fleet server, its address on stdout, and a clean end at SIGTERM. Owns no HTTP.
import { once } from 'node:events';
import { InvalidArgumentError } from '#commander';
import { WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import { startFleetServer } from '../../../fleet/http/fleet-server.js';
import type { WebhookTarget } from '../../../fleet/webhook/webhook.js';
import { notifyManagerOfServer } from '../../../platform/serve/sd-ready.js';
import { createBusyLog } from '../../../platform/telemetry/log.js';
import { openNotifier } from '../../../platform/telemetry/sd-notify.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional, required } from '../../console/flags.js';
import { listeningFlags, logLevel, reloadAtHangup, tlsFiles } from '../../serving/listening.js';

const flags = {
  store: required('--store <store>', 'directory, made when it is missing, or a postgres:// URL').env(
    'WRIT_FLEET_STORE',
  ),
  ...listeningFlags('127.0.0.1', 8090),
  webhook: optional(
    '--webhook <url>',
    "who is told when the fleet's state changes, in Alertmanager's format; https, or http on this machine",
    webhookFlag,
  ),
  webhookTokenFile: optional('--webhook-token-file <file>', 'file with a bearer token for it'),
  webhookCa: optional('--webhook-ca <file>', 'authorities to trust for it, PEM'),
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: [
    'writ fleet serve --store /var/lib/writ-fleet',
    'writ fleet serve --store /var/lib/writ-fleet --listen 0.0.0.0:443 --tls-cert fleet.crt --tls-key fleet.pem',
    'writ fleet serve --store postgres://db/fleet --webhook https://alarms.example.net/hook',
  ],
  exitCodes: [
    '0  ended by SIGTERM or SIGINT, requests under way finished, what was acknowledged stored',
    '1  cannot listen on this address, or the store cannot be used',
    '2  usage, no store of a fleet, or a TLS certificate and key that are no pair',
  ],
  onSignal: 'drain',
  flags,
  run: async (_args, flags, context) => {
    const log = createBusyLog('writ-fleet', logLevel(flags));
    const tls = tlsFiles(flags, context);
    const webhook = webhookTarget(flags, context);
    const { store, perAddress, proxy: proxies = [] } = flags;
    const server = await startFleetServer({
      store: /^postgres(?:ql)?:\/\//.test(store) ? store : context.at(store),
      ...flags.listen,
      ...given({ tls, webhook }),
      ...(perAddress === undefined ? {} : { limits: { maxConnectionsPerAddress: perAddress } }),
      ...{ proxies, log, clock: context.clock, processMetrics: 'include' },
    });
    const { url, fleetId } = server;
    const manager = notifyManagerOfServer(openNotifier({ ...context, log, pid: process.pid }), context.clock);
    const stopReloading = reloadAtHangup({ server, manager, log }, context);
    context.announce(listening(url, fleetId));
    manager.listening(url);
    if (!context.signal.aborted) await once(context.signal, 'abort');
    manager.stopping();
    await server.close();
    stopReloading();
    await manager.end();
    const lines = [`STOPPED ${url}: requests under way were finished`];
    return { outcome: 'stopped', details: { url }, lines };
  },
};

/** @param text what holds a secret in its path goes over TLS, or does not leave this machine */
function webhookFlag(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(url?.hostname ?? '');
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback);
  if (url === undefined || !isSafe || url.username !== '' || url.password !== '')
    throw new InvalidArgumentError('An https address is wanted, or http on this machine, without a user.');
  return url;
}

type WebhookFlags = Pick<FlagValues<typeof flags>, 'webhook' | 'webhookTokenFile' | 'webhookCa'>;

function webhookTarget(
  { webhook: url, webhookTokenFile: token, webhookCa: ca }: WebhookFlags,
  { at }: CommandContext,
): WebhookTarget | undefined {
  if (url !== undefined) return { url, ...given({ tokenFile: token && at(token), caFile: ca && at(ca) }) };
  if (token === undefined && ca === undefined) return undefined;
  throw new WritError('USAGE', '--webhook is missing: its token and its authorities are for it');
}

function listening(url: string, fleet: string): Answer {
  return {
    type: 'fleet-serve.listening',
    outcome: 'listening',
    details: { url, fleet },
    lines: [`LISTENING ${url}`],
    next: `make a token for hosts: writ fleet token create --for hosts --store S; then \`fleet: { url: ${url}, tokenFile: FILE }\` in agent.yaml`,
  };
}
