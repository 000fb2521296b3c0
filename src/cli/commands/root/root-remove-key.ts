// `writ root remove-key`: proposes a root without a key, because it was lost or stolen or its holder leaves.
import { preset } from '../../console/flags.js';
import { proposeCommand } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

export const command = proposeCommand({
  examples: [
    'writ root remove-key ben --repository repo -o root-2.proposal',
    'writ root remove-key 51d0a2b3 --role targets --repository repo',
  ],
  args: [['<key>', 'the key, by its name in the root or by its key id']],
  flags: { role: preset('--role <role>', 'the role that it no longer signs', 'root', roleFlag) },
  change: ([which = ''], { role }) => ({ remove: [{ role, which }] }),
});
