// `writ key list`: the keys of a directory, with their names and roles. Unlocks no secret key.
import { shortKeyId } from '../../../publisher/keys/signer-names.js';
import { describeKeys, type KeyDescription } from '../../../publisher/upkeep/describe-keys.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional, required } from '../../console/flags.js';
import { counted, table } from '../../show/show-text.js';

const flags = {
  keys: required('--keys <dir>', 'directory with key files'),
  repository: optional('--repository <dir>', 'shows which roles the keys sign'),
};
type KeyListFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<KeyListFlags> = {
  examples: ['writ key list --keys keys', 'writ key list --keys keys --repository repo --json'],
  exitCodes: ['0  listed', '1  the directory or the repository cannot be read', '2  usage'],
  flags,
  run: async (_args, flags, { reporter, at }) => {
    const description = describeKeys(at(flags.keys), at(flags.repository));
    for (const file of description.unreadable) reporter.warn(`${file} cannot be read`);
    return answer(description, flags);
  },
};

function answer({ keys, unreadable }: KeyDescription, flags: KeyListFlags): Answer {
  const withRoles = flags.repository !== undefined;
  const titles = ['file', 'name', 'key id', 'secret', ...(withRoles ? ['holds'] : [])];
  const rows = keys.map(({ file, name, keyId, encrypted, roles }) => {
    const held = withRoles ? [roles.join(', ') || 'no role'] : [];
    return [file, name, shortKeyId(keyId), encrypted ? 'encrypted' : 'in the clear', ...held];
  });
  return {
    outcome: 'listed',
    details: { directory: flags.keys, keys, unreadable },
    lines: [
      `LISTED ${counted(keys.length, 'key')} in ${flags.keys}`,
      ...(rows.length > 0 ? table(titles, rows) : []),
    ],
  };
}
