// `writ root threshold`: proposes a root with another threshold for a role.
import { numberFlag } from '../../console/flag-values.js';
import { preset } from '../../console/flags.js';
import { proposeCommand } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

export const command = proposeCommand({
  examples: [
    'writ root threshold 3 --repository repo -o root-2.proposal',
    'writ root threshold 2 --role targets --repository repo',
  ],
  args: [['<n>', 'how many keys must sign', numberFlag(1, 50)]],
  flags: { role: preset('--role <role>', 'the role that they sign', 'root', roleFlag) },
  change: ([count], { role }) => ({ thresholds: { [role]: Number(count) } }),
});
