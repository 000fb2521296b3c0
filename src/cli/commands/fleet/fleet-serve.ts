// `writ fleet serve`: starts a fleet server, prints its address on stdout, and stops in order at SIGTERM. Has no HTTP code.
import { once } from 'node:events';
import { join } from 'node:path';
import { InvalidArgumentError } from '#commander';
import { WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import { keepIntervalsMs } from '../../../fleet/hosts/sweeps.js';
import { type FleetServerOptions, startFleetServer } from '../../../fleet/http/fleet-server.js';
import { isDatabaseUrl } from '../../../fleet/store/open-store.js';
import type { WebhookTarget } from '../../../fleet/webhook/webhook.js';
import { notifyManagerOfServer } from '../../../platform/serve/sd-ready.js';
import { createBusyLog } from '../../../platform/telemetry/log.js';
import { openNotifier } from '../../../platform/telemetry/sd-notify.js';
import { asUser } from '../../../platform/users/user-id.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, repeatedText } from '../../console/flag-values.js';
import { besides, type FlagValues, optional, preset } from '../../console/flags.js';
import { logForm, logLevel } from '../../console/log-flags.js';
import { identityFlags, parseIdentityRule } from '../../fleet/identity-flags.js';
import { createStoreFileFlag } from '../../fleet/open-fleet-client.js';
import { readAuthorities } from '../../fleet/read-authorities.js';
import { readLineFile, readStoreLocation } from '../../fleet/store-location.js';
import { addressForHosts, listeningFlags, reloadAtHangup, tlsFiles } from '../../serving/listening.js';
import { shellQuote } from '../../show/show-repository.js';

const flags = {
  store: besides(
    optional('--store <store>', 'directory (created when missing), or a postgres:// URL').env(
      'WRIT_FLEET_STORE',
    ),
    'storeFile',
  ),
  storeFile: besides(createStoreFileFlag(), 'store'),
  repository: optional(
    '--repository <url>',
    'repository that hosts follow, to compare what should be in use, then its mirrors, separated by spaces; may be repeated, each with its --root',
    repeatedText,
  ),
  root: optional('--root <file>', 'root of that repository; may be repeated', repeatedText),
  repositoryCa: optional(
    '--repository-ca <file>',
    "authorities to trust for repositories instead of the system's, PEM: one for all, or one for each",
    repeatedText,
  ),
  state: optional(
    '--state <directory>',
    'where metadata of repositories is kept; by default in the store; required with PostgreSQL',
  ),
  readEvery: preset(
    '--read-every <duration>',
    'how often repositories are read, 1s to 1m',
    30_000,
    everyFlag,
    '30s',
  ),
  keepHistory: preset(
    '--keep-history <duration>',
    'how long it is kept which host ran or refused which release, from 1d to 3660d',
    keepIntervalsMs,
    keptFlag,
    '90d',
  ),
  ...listeningFlags('127.0.0.1', 8090),
  ...identityFlags,
  webhook: besides(
    optional(
      '--webhook <url>',
      "receiver to notify when the state of the fleet changes, in Alertmanager's format; https, or http on this machine",
      webhookFlag,
    ),
    'webhookFile',
  ),
  webhookFile: besides(
    optional('--webhook-file <file>', 'file with what --webhook would be: its path may be a secret'),
    'webhook',
  ),
  webhookTokenFile: optional('--webhook-token-file <file>', 'file with a bearer token for it'),
  webhookCa: optional('--webhook-ca <file>', 'authorities to trust for it, PEM'),
  publicUrl: optional(
    '--public-url <url>',
    'where people reach this server: for links in notifications, and with https for the cookies behind a proxy with TLS; by default the address it listens on',
    publicUrlFlag,
  ),
};
type ServeFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<ServeFlags> = {
  examples: [
    'writ fleet serve --store /var/lib/writ-fleet',
    'writ fleet serve --store /var/lib/writ-fleet --repository https://policy.example.net --root root.json',
    "writ fleet serve --store /var/lib/writ-fleet --repository 'https://a.example.net https://b.example.net' --repository-ca ca.pem --root root.json",
    'writ fleet serve --store /var/lib/writ-fleet --listen 0.0.0.0:443 --tls-cert fleet.crt --tls-key fleet.pem',
    'writ fleet serve --store postgres://db/fleet --webhook https://alarms.example.net/hook',
  ],
  exitCodes: [
    '0  ended by SIGTERM or SIGINT; running requests were finished, acknowledged reports are stored',
    '1  cannot listen on this address, or the store cannot be used',
    '2  usage, not a fleet store, one that a newer version has taken over, or a TLS certificate and key that do not match',
  ],
  onSignal: 'drain',
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const log = createBusyLog('writ-fleet', logLevel(flags), logForm(flags, context));
    const tls = tlsFiles(flags, context);
    const webhook = webhookTarget({ ...flags, webhook: webhookUrl(flags, context) }, context);
    const identity = parseIdentityRule(flags);
    const store = readStoreLocation(flags, context.at);
    if (store === undefined)
      throw new WritError('USAGE', '--store is missing: a directory, or a postgres:// URL', {
        hint: 'writ fleet serve --store /var/lib/writ-fleet, or --store-file FILE for a URL with a password',
      });
    const { perAddress, proxy: proxies = [] } = flags;
    const server = await startFleetServer({
      store: isDatabaseUrl(store) ? store : context.at(store),
      ...repositoriesOf({ ...flags, store }, context),
      ...flags.listen,
      ...given({ tls, webhook, identity, publicUrl: flags.publicUrl }),
      keepHistoryMs: flags.keepHistory,
      ...(perAddress === undefined ? {} : { limits: { maxConnectionsPerAddress: perAddress } }),
      ...{ proxies, log, clock: context.clock, processMetrics: 'include' },
    });
    const { url, fleetId } = server;
    const manager = notifyManagerOfServer(openNotifier({ ...context, log, pid: process.pid }), context.clock);
    const stopReloading = reloadAtHangup({ server, manager, log }, context);
    const isUnit = context.env['INVOCATION_ID'] !== undefined;
    context.announce(listening(url, fleetId, { ...flags, store, isUnit }));
    manager.listening(url);
    const newer = context.signal.aborted
      ? undefined
      : await Promise.race([server.overtaken, once(context.signal, 'abort').then(() => undefined)]);
    manager.stopping();
    await server.close();
    stopReloading();
    await manager.end();
    if (newer !== undefined) throw newer;
    const lines = [`STOPPED ${url}: running requests were finished`];
    return { outcome: 'stopped', details: { url }, lines };
  },
};

/** Accepts https, or http on this machine only, because the path of the URL may contain a secret. */
function webhookFlag(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(url?.hostname ?? '');
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback);
  if (url === undefined || !isSafe || url.username !== '' || url.password !== '')
    throw new InvalidArgumentError('Give an https address, or http on this machine, without a user.');
  return url;
}

/** @throws WritError USAGE */
function webhookUrl(
  { webhook, webhookFile }: Pick<ServeFlags, 'webhook' | 'webhookFile'>,
  { at }: CommandContext,
): URL | undefined {
  if (webhookFile === undefined) return webhook;
  if (webhook !== undefined)
    throw new WritError('USAGE', '--webhook and --webhook-file both name a receiver: give one of them');
  const text = readLineFile(at(webhookFile), 'webhook');
  try {
    return webhookFlag(text);
  } catch (error) {
    // The error omits the text of the file, because it is a secret.
    throw new WritError('USAGE', `the file of the webhook ${webhookFile} cannot be used`, {
      hint: error instanceof Error ? error.message : String(error),
    });
  }
}

/** Accepts no path in the URL, because the pages start at `/`. */
function publicUrlFlag(text: string): string {
  const url = URL.canParse(text) && text.length <= 500 ? new URL(text) : undefined;
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (url !== undefined && isWeb && url.href === `${url.origin}/`) return url.origin;
  throw new InvalidArgumentError('Give the address of the page only, for example https://fleet.example.net.');
}

type WebhookFlags = Pick<FlagValues<typeof flags>, 'webhook' | 'webhookTokenFile' | 'webhookCa'>;

function webhookTarget(
  { webhook: url, webhookTokenFile: token, webhookCa: ca }: WebhookFlags,
  { at }: CommandContext,
): WebhookTarget | undefined {
  if (url !== undefined) return { url, ...given({ tokenFile: token && at(token), caFile: ca && at(ca) }) };
  if (token === undefined && ca === undefined) return undefined;
  throw new WritError('USAGE', '--webhook is missing: --webhook-token-file and --webhook-ca need it');
}

/** At most one minute, because a reading of the repository is current for two minutes. */
function everyFlag(text: string): number {
  const everyMs = durationFlag(text);
  if (everyMs >= 1000 && everyMs <= 60_000) return everyMs;
  throw new InvalidArgumentError('Give a duration from 1s to 1m.');
}

const dayMs = 86_400_000;

function keptFlag(text: string): number {
  const keptMs = durationFlag(text);
  if (keptMs >= dayMs && keptMs <= 3660 * dayMs) return keptMs;
  throw new InvalidArgumentError('Give a duration from 1d to 3660d.');
}

/** The limit of a host's configuration. */
const maxPlaces = 16;

function repositoriesOf(
  {
    repository = [],
    root = [],
    repositoryCa = [],
    state,
    store,
    readEvery: everyMs,
  }: ServeFlags & { readonly store: string },
  { at }: CommandContext,
): Partial<Pick<FleetServerOptions, 'repositories'>> {
  if (repository.length !== root.length)
    throw new WritError(
      'USAGE',
      `${repository.length} --repository and ${root.length} --root: each repository needs its own root`,
      {
        hint: 'For example --repository https://a.example.net --root a.json --repository https://b.example.net --root b.json.',
      },
    );
  if (repositoryCa.length > 1 && repositoryCa.length !== repository.length)
    throw new WritError(
      'USAGE',
      `${repositoryCa.length} --repository-ca and ${repository.length} --repository: one for all, or each its own`,
    );
  if (repository.length === 0 && repositoryCa.length > 0)
    throw new WritError('USAGE', '--repository is missing: --repository-ca needs it');
  if (repository.length === 0) return {};
  if (state === undefined && isDatabaseUrl(store))
    throw new WritError(
      'USAGE',
      '--state is missing: repository metadata is kept in a directory of this machine',
    );
  const authorities = repositoryCa.map((file) => readAuthorities(at(file)));
  const followed = repository.map((places, index) => {
    const [url = '', ...mirrors] = places.split(/\s+/).filter((place) => place !== '');
    if (mirrors.length >= maxPlaces)
      throw new WritError('USAGE', `a repository has at most ${maxPlaces} places: ${mirrors.length + 1}`);
    const ca = authorities[authorities.length === 1 ? 0 : index];
    return { url, mirrors, rootFile: at(root[index] ?? ''), ...given({ ca }) };
  });
  const directory = state === undefined ? join(at(store), 'repositories') : at(state);
  return { repositories: { followed, state: directory, everyMs } };
}

interface Served {
  readonly store: string;
  readonly storeFile?: string | undefined;
  /** systemd started the server: root reads the result in the journal, and must not make files in the store of another user. */
  readonly isUnit: boolean;
}

function listening(url: string, fleet: string, { store, storeFile, isUnit }: Served): Answer {
  const uid = process.getuid?.() ?? 0;
  // The URL of a database may contain a password.
  const where = isDatabaseUrl(store) ? 'S' : shellQuote(store);
  const given = storeFile === undefined ? `--store ${where}` : `--store-file ${shellQuote(storeFile)}`;
  const create = `writ fleet token create -q --for hosts ${given} > fleet.token`;
  const command = uid === 0 || !isUnit ? create : `${asUser(uid)} ${create}`;
  return {
    type: 'fleet-serve.listening',
    outcome: 'listening',
    details: { url, fleet },
    lines: [`LISTENING ${url}`],
    next: `create a token for hosts: ${command}; then \`fleet: { url: ${addressForHosts(url)}, tokenFile: FILE }\` in agent.yaml`,
  };
}
