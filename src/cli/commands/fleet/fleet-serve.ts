// `writ fleet serve`: flags to a running fleet server, its address on stdout, and a clean end at SIGTERM. Owns no HTTP.
import { once } from 'node:events';
import { join } from 'node:path';
import { InvalidArgumentError } from '#commander';
import { WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import { type FleetServerOptions, startFleetServer } from '../../../fleet/http/fleet-server.js';
import { isDatabaseUrl } from '../../../fleet/store/open-store.js';
import type { WebhookTarget } from '../../../fleet/webhook/webhook.js';
import { notifyManagerOfServer } from '../../../platform/serve/sd-ready.js';
import { createBusyLog } from '../../../platform/telemetry/log.js';
import { openNotifier } from '../../../platform/telemetry/sd-notify.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, repeatedText } from '../../console/flag-values.js';
import { type FlagValues, optional, preset, required } from '../../console/flags.js';
import { listeningFlags, logLevel, reloadAtHangup, tlsFiles } from '../../serving/listening.js';

const flags = {
  store: required('--store <store>', 'directory, made when it is missing, or a postgres:// URL').env(
    'WRIT_FLEET_STORE',
  ),
  repository: optional(
    '--repository <url>',
    'repository that hosts follow, to know what should be in use; may be repeated, each with its --root',
    repeatedText,
  ).env('WRIT_FLEET_REPOSITORY'),
  root: optional('--root <file>', 'root of that repository; may be repeated', repeatedText).env(
    'WRIT_FLEET_ROOT',
  ),
  state: optional(
    '--state <directory>',
    'where metadata of repositories is kept; by default in the store, with PostgreSQL it has to be said',
  ).env('WRIT_FLEET_STATE'),
  readEvery: preset(
    '--read-every <duration>',
    'how often repositories are read, 1s to 1m',
    30_000,
    everyFlag,
    '30s',
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
type ServeFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<ServeFlags> = {
  examples: [
    'writ fleet serve --store /var/lib/writ-fleet',
    'writ fleet serve --store /var/lib/writ-fleet --repository https://policy.example.net --root root.json',
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
      store: isDatabaseUrl(store) ? store : context.at(store),
      ...repositoriesOf(flags, context),
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

/** A reading speaks for the present for two minutes. */
function everyFlag(text: string): number {
  const everyMs = durationFlag(text);
  if (everyMs >= 1000 && everyMs <= 60_000) return everyMs;
  throw new InvalidArgumentError('A duration from 1s to 1m is wanted.');
}

function repositoriesOf(
  { repository = [], root = [], state, store, readEvery: everyMs }: ServeFlags,
  { at }: CommandContext,
): Partial<Pick<FleetServerOptions, 'repositories'>> {
  if (repository.length !== root.length)
    throw new WritError(
      'USAGE',
      `${repository.length} --repository and ${root.length} --root: each has its own`,
      {
        hint: 'As --repository https://a.example.net --root a.json --repository https://b.example.net --root b.json.',
      },
    );
  if (repository.length === 0) return {};
  if (state === undefined && isDatabaseUrl(store))
    throw new WritError(
      'USAGE',
      '--state is missing: what a repository says is kept in a directory of this machine',
    );
  const followed = repository.map((url, index) => ({ url, rootFile: at(root[index] ?? '') }));
  const directory = state === undefined ? join(at(store), 'repositories') : at(state);
  return { repositories: { followed, state: directory, everyMs } };
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
