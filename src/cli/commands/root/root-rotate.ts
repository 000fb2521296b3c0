// `writ root rotate`: proposes the next root in general form; without a change, the yearly re-sign.
import { readPublicKey } from '../../../publisher/keys/public-key.js';
import { numberFlag, repeatedText } from '../../console/flag-values.js';
import { type ProposeFlags, proposeCommand } from '../../repository/propose.js';
import { roleKeys } from '../../repository/role-keys.js';

interface RotateFlags extends ProposeFlags {
  readonly remove?: readonly string[];
  readonly add?: readonly string[];
  readonly replace?: readonly string[];
  readonly threshold?: number;
}

export const command = proposeCommand<RotateFlags>({
  examples: [
    'writ root rotate --repository repo -o root-2.proposal',
    'writ root rotate --repository repo --remove root-3 --add carol.pub -o root-2.proposal',
    'writ root rotate --repository repo --replace timestamp=timestamp-2.pub --replace snapshot=snapshot-2.pub',
  ],
  configure: (rotate) => {
    rotate
      .option('--remove <name>', 'take a root key away, by name or key id; may be repeated', repeatedText)
      .option('--add <pub>', 'add a root key, a .pub or PEM file; may be repeated', repeatedText)
      .option('--replace <role=pub>', 'the only key of a role from then on; may be repeated', repeatedText)
      .option('--threshold <n>', 'how many root keys must sign from then on', numberFlag(1, 50));
  },
  change: (_args, { remove = [], add = [], replace = [], threshold }, context) => ({
    add: add.map((path) => ({ role: 'root', key: readPublicKey(context.at(path)) })),
    remove: remove.map((which) => ({ role: 'root', which })),
    replace: replace.map((text) => roleKeys(text, context)),
    thresholds: threshold === undefined ? {} : { root: threshold },
  }),
});
