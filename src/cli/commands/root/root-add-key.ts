// `writ root add-key`: proposes a root with one key more in a role.
import type { TopLevelRole } from '../../../core/tuf/tuf-metadata.js';
import { readPublicKey } from '../../../publisher/keys/public-key.js';
import { noChange } from '../../../publisher/root/root-change.js';
import type { CommandDefinition } from '../../console/command.js';
import { addProposeFlags, type ProposeFlags, propose, proposeExitCodes } from '../../repository/propose.js';
import { roleFlag } from '../../repository/role-keys.js';

interface AddKeyFlags extends ProposeFlags {
  readonly role: TopLevelRole;
}

export const command: CommandDefinition<AddKeyFlags> = {
  examples: [
    'writ root add-key carol.pub --repository repo -o root-2.proposal',
    'writ root add-key yubikey.pem --role targets --repository repo',
  ],
  exitCodes: proposeExitCodes,
  onSignal: 'end',
  configure: (add) => {
    add
      .argument('<pub>', 'the public key: a .pub file, or PEM of another program')
      .option('--role <role>', 'the role that it signs', roleFlag, 'root');
    addProposeFlags(add);
  },
  run: async ([path = ''], flags, context) => {
    const add = [{ role: flags.role, key: readPublicKey(context.at(path)) }];
    return propose('root-add-key', { ...noChange, add }, flags, context);
  },
};
