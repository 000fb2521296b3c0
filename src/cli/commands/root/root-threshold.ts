// `writ root threshold`: proposes a root where more, or fewer, keys of a role must sign.
import type { TopLevelRole } from '../../../core/tuf/tuf-metadata.js';
import { numberFlag } from '../../console/flag-values.js';
import { type ProposeFlags, proposeCommand } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

interface ThresholdFlags extends ProposeFlags {
  readonly role: TopLevelRole;
}

export const command = proposeCommand<ThresholdFlags>({
  examples: [
    'writ root threshold 3 --repository repo -o root-2.proposal',
    'writ root threshold 2 --role targets --repository repo',
  ],
  configure: (threshold) => {
    threshold
      .argument('<n>', 'how many keys must sign', numberFlag(1, 50))
      .option('--role <role>', 'the role that they sign', roleFlag, 'root');
  },
  change: ([count], { role }) => ({ thresholds: { [role]: Number(count) } }),
});
