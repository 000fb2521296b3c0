// `writ root threshold`: proposes a root where more, or fewer, keys of a role must sign.
import type { TopLevelRole } from '../../../core/tuf/tuf-metadata.js';
import { noChange } from '../../../publisher/root/root-change.js';
import type { CommandDefinition } from '../../console/command.js';
import { numberFlag } from '../../console/flag-values.js';
import { addProposeFlags, type ProposeFlags, propose, proposeExitCodes } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

interface ThresholdFlags extends ProposeFlags {
  readonly role: TopLevelRole;
}

export const command: CommandDefinition<ThresholdFlags> = {
  examples: [
    'writ root threshold 3 --repository repo -o root-2.proposal',
    'writ root threshold 2 --role targets --repository repo',
  ],
  exitCodes: proposeExitCodes,
  onSignal: 'end',
  configure: (threshold) => {
    threshold
      .argument('<n>', 'how many keys must sign', numberFlag(1, 50))
      .option('--role <role>', 'the role that they sign', roleFlag, 'root');
    addProposeFlags(threshold);
  },
  run: async ([count], flags, context) => {
    const thresholds = { [flags.role]: Number(count) };
    return propose('root-threshold', { ...noChange, thresholds }, flags, context);
  },
};
