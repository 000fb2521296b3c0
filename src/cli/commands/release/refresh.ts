// `writ refresh`: signs snapshot and timestamp anew, and takes targets that wait for them live.
import { isOnlineRole, onlineRoles } from '../../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import {
  openOnlineSigners,
  type ResignResult,
  resignOnline,
} from '../../../publisher/signing/online-signing.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { durationFlag } from '../../console/flag-values.js';
import { addPassphraseFlag, type PassphraseFlags, passphrasesFor } from '../../repository/passphrase.js';
import { addSignerFlags, externalCommands, type SignerFlags } from '../../repository/signer-flags.js';

interface RefreshFlags extends PassphraseFlags, SignerFlags {
  readonly repository: string;
  readonly keys: string;
  readonly lockWait: number;
}

export const command: CommandDefinition<RefreshFlags> = {
  examples: [
    'writ refresh --repository repo --keys keys',
    'writ refresh --repository repo --keys /etc/writ/online --passphrase-file /run/credentials/passphrase',
  ],
  exitCodes: [
    '0  signed, and verified before it went live',
    '1  keys missing or not opened, the repository does not verify, disk failure; nothing went live',
    '2  usage',
    '6  another process writes the repository',
  ],
  configure: (refresh) => {
    refresh
      .requiredOption('--repository <dir>', 'the repository that `writ init` made')
      .requiredOption('--keys <dir>', 'directory with the snapshot and timestamp keys')
      .option('--lock-wait <duration>', 'how long to wait for another writer', durationFlag, 10_000);
    addPassphraseFlag(refresh);
    addSignerFlags(refresh);
  },
  run: async (_args, flags, context) => {
    const external = externalCommands(flags, context, isOnlineRole);
    const keys = { path: context.at(flags.keys), passphrases: passphrasesFor(flags, context), external };
    const signers = await openOnlineSigners(context.at(flags.repository), keys);
    context.reporter.begin('sign', 'snapshot, timestamp');
    const result = await resignOnline({
      repository: context.at(flags.repository),
      signers,
      roles: onlineRoles,
      keysDirectory: keys.path,
      clock: context.clock,
      durableFs: createDurableFs(),
      holder: 'refresh',
      lockWaitMs: flags.lockWait,
    });
    const { snapshot, timestamp } = result.versions;
    context.reporter.finish('sign', `snapshot v${snapshot}, timestamp v${timestamp}`);
    for (const name of result.ignored) context.reporter.warn(`${name} does not verify and was left out`);
    return answer(result);
  },
};

function answer({ versions, targetsBefore, wentLive, ignored }: ResignResult): Answer {
  const texts = wentLive.map(({ role, version }) =>
    role === 'targets' ? `targets v${targetsBefore} -> v${version}` : `${role} v${version}`,
  );
  const news = texts.length === 0 ? '' : `; ${texts.join(', ')} went live`;
  return {
    outcome: 'signed',
    details: { changed: true, versions, targetsBefore, wentLive, ignored },
    lines: [`SIGNED snapshot v${versions.snapshot}, timestamp v${versions.timestamp}${news}`],
  };
}
