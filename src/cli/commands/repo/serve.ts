// `writ serve`: starts a server, prints its address on stdout, and stops in order at SIGTERM.
// Contains no HTTP or signing code. Of --keys only the two online keys are read.
import { once } from 'node:events';
import { notifyManagerOfServer } from '../../../platform/serve/sd-ready.js';
import { createBusyLog } from '../../../platform/telemetry/log.js';
import { openNotifier } from '../../../platform/telemetry/sd-notify.js';
import type { OnlineSigner } from '../../../server/resign/resigner.js';
import { requireRepository, startServer } from '../../../server/server.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional } from '../../console/flags.js';
import { logForm, logLevel } from '../../console/log-flags.js';
import { passphraseFlags, passphrasesFor } from '../../repository/passphrase.js';
import { repositoryFlag } from '../../repository/repository-flags.js';
import { addressForHosts, listeningFlags, reloadAtHangup, tlsFiles } from '../../serving/listening.js';

const flags = {
  repository: repositoryFlag,
  keys: optional(
    '--keys <dir>',
    'directory with the snapshot and timestamp keys: re-signs before they expire',
  ),
  ...listeningFlags('127.0.0.1', 8080),
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
    '0  ended by SIGTERM or SIGINT; running requests were finished',
    '1  cannot listen on this address, or the online keys are missing or not opened',
    '2  usage, not a repository, or a TLS certificate and key that do not match',
  ],
  onSignal: 'drain',
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const log = createBusyLog('writ-server', logLevel(flags), logForm(flags, context));
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
    const lines = [`STOPPED ${server.url}: running requests were finished`];
    return { outcome: 'stopped', details: { url: server.url }, lines };
  },
};

async function onlineSigner(flags: ServeFlags, context: CommandContext): Promise<OnlineSigner | undefined> {
  if (flags.keys === undefined) return undefined;
  const repository = context.at(flags.repository);
  requireRepository(repository);
  const keys = { path: context.at(flags.keys), passphrases: passphrasesFor(flags, context) };
  // Without --keys the signing code is not loaded.
  const { createOnlineSigner } = await import('../../repository/online-signer.js');
  return createOnlineSigner(repository, keys, context.clock);
}

function listening(url: string): Answer {
  return {
    type: 'serve.listening',
    outcome: 'listening',
    details: { url },
    lines: [`LISTENING ${url}`],
    next: `set \`repository: ${addressForHosts(url)}/\` in the agent's configuration`,
  };
}
