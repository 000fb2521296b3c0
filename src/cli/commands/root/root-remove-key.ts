// `writ root remove-key`: proposes a root without a key, because it was lost or stolen or its holder leaves.
import type { TopLevelRole } from '../../../core/tuf/tuf-metadata.js';
import { type ProposeFlags, proposeCommand } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

interface RemoveKeyFlags extends ProposeFlags {
  readonly role: TopLevelRole;
}

export const command = proposeCommand<RemoveKeyFlags>({
  examples: [
    'writ root remove-key ben --repository repo -o root-2.proposal',
    'writ root remove-key 51d0a2b3 --role targets --repository repo',
  ],
  configure: (remove) => {
    remove
      .argument('<key>', 'whose key, by the name in the root or by its key id')
      .option('--role <role>', 'the role that it signs no more', roleFlag, 'root');
  },
  change: ([which = ''], { role }) => ({ remove: [{ role, which }] }),
});
