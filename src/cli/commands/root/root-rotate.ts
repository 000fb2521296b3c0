// `writ root rotate`: proposes the next root in general form; without a change, the yearly re-sign.
import { readPublicKey } from '../../../publisher/keys/public-key.js';
import { numberFlag, repeatedText } from '../../console/flag-values.js';
import { optional } from '../../console/flags.js';
import { proposeCommand } from '../../repository/propose.js';
import { roleKeys } from '../../repository/role-keys.js';

export const command = proposeCommand({
  examples: [
    'writ root rotate --repository repo -o root-2.proposal',
    'writ root rotate --repository repo --remove root-3 --add carol.pub -o root-2.proposal',
    'writ root rotate --repository repo --replace timestamp=timestamp-2.pub --replace snapshot=snapshot-2.pub',
  ],
  flags: {
    remove: optional(
      '--remove <name>',
      'remove a root key, by name or key id; may be repeated',
      repeatedText,
    ),
    add: optional('--add <pub>', 'add a root key, a .pub or PEM file; may be repeated', repeatedText),
    replace: optional(
      '--replace <role=pub>',
      'the only key of a role from then on; may be repeated',
      repeatedText,
    ),
    threshold: optional('--threshold <n>', 'how many root keys must sign from then on', numberFlag(1, 50)),
  },
  change: (_args, { remove = [], add = [], replace = [], threshold }, context) => ({
    add: add.map((path) => ({ role: 'root', key: readPublicKey(context.at(path)) })),
    remove: remove.map((which) => ({ role: 'root', which })),
    replace: replace.map((text) => roleKeys(text, context)),
    thresholds: threshold === undefined ? {} : { root: threshold },
  }),
});
