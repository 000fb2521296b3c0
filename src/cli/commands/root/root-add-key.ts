// `writ root add-key`: proposes a root with an additional key in a role.
import { readPublicKey } from '../../../publisher/keys/public-key.js';
import { preset } from '../../console/flags.js';
import { proposeCommand } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

export const command = proposeCommand({
  examples: [
    'writ root add-key carol.pub --repository repo -o root-2.proposal',
    'writ root add-key yubikey.pem --role targets --repository repo',
  ],
  args: [['<pub>', 'the public key: a .pub file, or PEM of another program']],
  flags: { role: preset('--role <role>', 'the role that it signs', 'root', roleFlag) },
  change: ([path = ''], { role }, { at }) => ({ add: [{ role, key: readPublicKey(at(path)) }] }),
});
