// `writ refresh`: re-signs snapshot and timestamp, and publishes targets that wait for them.
import { given } from '../../../core/given.js';
import { isOnlineRole, onlineRoles } from '../../../core/tuf/tuf-metadata.js';
import {
  damagedHint,
  ignoredDetails,
  ignoredHint,
  ignoredText,
} from '../../../publisher/repository/ignored-file.js';
import { openOnlineSigners } from '../../../publisher/signing/online-signing.js';
import { type ResignResult, resignOnline } from '../../../publisher/signing/resign-online.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { type FlagValues, required } from '../../console/flags.js';
import {
  acceptMissingFlag,
  type ChangeFlags,
  changeFlags,
  changeOptions,
  warnOfClock,
  warnOfPassedOver,
} from '../../repository/change-flags.js';
import { leftOutLines, releaseDetails, releaseLines } from '../../show/show-repository.js';

const flags = {
  ...changeFlags,
  keys: required('--keys <dir>', 'directory with the snapshot and timestamp keys'),
  acceptMissing: acceptMissingFlag,
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: [
    'writ refresh --repository repo --keys keys',
    'writ refresh --repository repo --keys /etc/writ/online --passphrase-file /run/credentials/passphrase',
  ],
  exitCodes: [
    '0  signed, and verified before publishing',
    '1  keys missing or not opened, the repository does not verify, disk failure; nothing was published',
    '2  usage',
    '7  another process writes the repository',
  ],
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const options = changeOptions(flags, context, 'refresh', isOnlineRole);
    const { repository, keys } = options;
    const signers = await openOnlineSigners(repository, keys);
    context.reporter.begin('sign', 'snapshot, timestamp');
    const missingFiles = flags.acceptMissing ? ('accepted' as const) : ('refused' as const);
    const own = { signers, roles: onlineRoles, keysDirectory: keys.path, missingFiles };
    const result = await resignOnline({ ...options, ...own });
    const { snapshot, timestamp } = result.versions;
    context.reporter.finish('sign', `snapshot v${snapshot}, timestamp v${timestamp}`);
    warnOfClock(result, context.reporter);
    warnOfPassedOver(result.passedOver, context.reporter);
    for (const { name, cause } of result.damaged)
      context.reporter.warn(`${cause.message} [${cause.code}]: ${damagedHint(name)}`);
    for (const file of result.ignored) context.reporter.warn(`${ignoredText(file)}. ${ignoredHint(file)}`);
    return answer(result, flags);
  },
};

function answer(result: ResignResult, { repository }: ChangeFlags): Answer {
  const { versions, targetsBefore, wentLive, newReleases, ignored, damaged, signedAheadMs } = result;
  const texts = wentLive.map(({ role, version }) =>
    role === 'targets' ? `targets v${targetsBefore} -> v${version}` : `${role} v${version}`,
  );
  const published = texts.length === 0 ? '' : `; ${texts.join(', ')} published`;
  return {
    outcome: 'signed',
    details: {
      changed: true,
      versions,
      targetsBefore,
      wentLive,
      newReleases: releaseDetails(newReleases),
      ...ignoredDetails(ignored),
      damaged: damaged.map(({ name, cause }) => ({ name, code: cause.code, message: cause.message })),
      ...given({ signedAheadMs }),
    },
    lines: [
      `SIGNED snapshot v${versions.snapshot}, timestamp v${versions.timestamp}${published}`,
      ...releaseLines('publishes', newReleases),
      ...leftOutLines(ignored, repository),
    ],
  };
}
