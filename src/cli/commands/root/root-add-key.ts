// `writ root add-key`: proposes a root with one key more in a role.
import type { TopLevelRole } from '../../../core/tuf/tuf-metadata.js';
import { readPublicKey } from '../../../publisher/keys/public-key.js';
import { type ProposeFlags, proposeCommand } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

interface AddKeyFlags extends ProposeFlags {
  readonly role: TopLevelRole;
}

export const command = proposeCommand<AddKeyFlags>({
  examples: [
    'writ root add-key carol.pub --repository repo -o root-2.proposal',
    'writ root add-key yubikey.pem --role targets --repository repo',
  ],
  configure: (add) => {
    add
      .argument('<pub>', 'the public key: a .pub file, or PEM of another program')
      .option('--role <role>', 'the role that it signs', roleFlag, 'root');
  },
  change: ([path = ''], { role }, { at }) => ({ add: [{ role, key: readPublicKey(at(path)) }] }),
});
