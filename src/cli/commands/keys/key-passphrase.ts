// `writ key passphrase`: encrypts a key with another passphrase, in one rename. The key id does not change.
import { WritError } from '../../../core/errors.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import { openSeed } from '../../../publisher/keys/key-directory.js';
import { readKeyFile, replaceKeyFile } from '../../../publisher/keys/key-file.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { requireOwnKeyFile } from '../../repository/own-places.js';
import {
  generatedLines,
  type NewPassphrase,
  newPassphrase,
  passphraseFlags,
  passphrasesFor,
} from '../../repository/passphrase.js';

const flags = {
  ...passphraseFlags,
  newPassphraseFile: optional('--new-passphrase-file <file>', 'file with the new passphrase'),
  newPassphraseCommand: optional('--new-passphrase-command <cmd>', 'command that writes the new passphrase'),
  passphrase: toggle('--no-passphrase', 'leave the key file unencrypted from now on'),
};
type KeyPassphraseFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<KeyPassphraseFlags> = {
  examples: [
    'writ key passphrase keys/anna.key',
    'writ key passphrase keys/anna.key --passphrase-file old --new-passphrase-file new',
  ],
  exitCodes: [
    '0  changed',
    '1  the key cannot be opened, or a disk failure; the file is unchanged',
    '2  usage',
  ],
  args: [['<file>', 'the key file']],
  flags,
  acts: () => true,
  run: async ([path = ''], flags, context) => {
    requireOwnKeyFile(context.at(path));
    const file = readKeyFile(context.at(path));
    if (file === undefined) throw new WritError('KEY_UNREADABLE', `${path} is missing`, { facts: { path } });
    const seed = await openSeed(file, passphrasesFor(flags, context));
    const chosen = flags.passphrase ? await nextPassphrase(flags, context) : undefined;
    const { path: opened, name } = file;
    replaceKeyFile({
      path: opened,
      seed,
      name,
      durableFs: createDurableFs(),
      passphrase: chosen?.passphrase,
    });
    return answer(path, chosen);
  },
};

function nextPassphrase(flags: KeyPassphraseFlags, context: CommandContext): Promise<NewPassphrase> {
  const { newPassphraseFile: passphraseFile, newPassphraseCommand: passphraseCommand } = flags;
  // WRIT_PASSPHRASE is the old passphrase.
  const env = { ...context.env, WRIT_PASSPHRASE: context.env['WRIT_NEW_PASSPHRASE'] };
  return newPassphrase({ passphraseFile, passphraseCommand }, { ...context, env }, 'the key from now on');
}

function answer(path: string, chosen: NewPassphrase | undefined): Answer {
  const encrypted = chosen !== undefined;
  return {
    outcome: 'changed',
    details: { file: path, encrypted },
    lines: [
      encrypted
        ? `CHANGED ${path} opens with the new passphrase only`
        : `CHANGED ${path} is no longer encrypted: whoever reads it can sign`,
      ...generatedLines('Passphrase', chosen),
      'Copies of the file still open with the old one.',
    ],
  };
}
