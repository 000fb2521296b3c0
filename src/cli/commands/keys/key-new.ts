// `writ key new`: creates a secret key for one person or device, and its public file.
import { basename, join } from 'node:path';
import { WritError } from '../../../core/errors.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import { makeKey } from '../../../publisher/keys/new-key.js';
import { publicPathOf } from '../../../publisher/keys/public-key.js';
import { isSignerName } from '../../../publisher/keys/signer-names.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { requireOwnKeyFile } from '../../repository/own-places.js';
import {
  generatedLines,
  type NewPassphrase,
  newPassphrase,
  passphraseFlags,
} from '../../repository/passphrase.js';
import { shellQuote } from '../../show/show-repository.js';

const flags = {
  keys: optional('--keys <dir>', 'directory for NAME.key and NAME.pub'),
  name: optional('--name <name>', 'owner of the key; by default the name of the file'),
  passphrase: toggle('--no-passphrase', 'leave the key file unencrypted'),
  ...passphraseFlags,
};
type KeyNewFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<KeyNewFlags> = {
  examples: ['writ key new --keys keys --name carol', 'writ key new /media/usb/carol.key --name "Carol M."'],
  exitCodes: ['0  made', '1  a disk failure', '2  usage, or the key file exists'],
  args: [['[file]', 'file for the secret key, for example carol.key; carol.pub is written beside it']],
  flags,
  acts: () => true,
  run: async ([file], flags, context) => {
    const { path, name } = fileAndHolder(file, flags);
    requireOwnKeyFile(context.at(path));
    const chosen = flags.passphrase ? await newPassphrase(flags, context, 'the new key') : undefined;
    const signer = makeKey({
      path: context.at(path),
      name,
      durableFs: createDurableFs(),
      passphrase: chosen?.passphrase,
    });
    return answer({ path, name, keyId: signer.keyId }, chosen);
  },
};

function fileAndHolder(file: string | undefined, flags: KeyNewFlags): { path: string; name: string } {
  const { keys, name: given } = flags;
  if ((file === undefined) === (keys === undefined)) {
    throw new WritError('USAGE', 'give either FILE or --keys for the place of the key', {
      hint: 'writ key new --keys DIR --name anna, or writ key new anna.key',
    });
  }
  const name = given ?? basename(file ?? '', '.key');
  const usable: boolean = isSignerName(name);
  if (!usable) {
    throw new WritError(
      'USAGE',
      'a name has up to 64 letters, digits, spaces and . _ @ - and begins with a letter or digit',
      {
        facts: { actual: name.slice(0, 100) },
        hint: 'Give the name of the holder with --name.',
      },
    );
  }
  if (file !== undefined) return { path: withEnding(file), name };
  return { path: join(keys ?? '', `${name.replaceAll(/[ '@]+/g, '-')}.key`), name };
}

/** @throws WritError USAGE for another ending, because a directory of keys is searched for `.key` files only */
function withEnding(file: string): string {
  if (file.endsWith('.key')) return file;
  throw new WritError('USAGE', 'the file of a secret key ends with .key', { facts: { actual: file } });
}

function answer(
  { path, name, keyId }: Record<'path' | 'name' | 'keyId', string>,
  chosen: NewPassphrase | undefined,
): Answer {
  const publicPath = publicPathOf(path);
  const encrypted = chosen !== undefined;
  const secretLine = encrypted
    ? 'encrypted; keep it, and a copy in another place'
    : 'NOT encrypted: whoever reads it can sign';
  return {
    outcome: 'created',
    details: { name, keyId, secret: path, public: publicPath, encrypted, scheme: 'ed25519' },
    lines: [
      `CREATED key of ${name} (ed25519)`,
      `  key id  ${keyId}`,
      `  secret  ${path}      ${secretLine}`,
      `  public  ${publicPath}      give this one to others`,
      ...generatedLines('Passphrase', chosen),
      'It signs no role until it is added to one: of a team by',
      `  writ delegate TEAM --paths 'NAME*/*' --key ${shellQuote(publicPath)} --repository DIR --keys DIR`,
      'of the root in place of another key:',
      `  writ root rotate --remove NAME --add ${shellQuote(publicPath)} --repository DIR -o root.proposal`,
      'or beside those that it has:',
    ],
    next: `writ root add-key ${shellQuote(publicPath)} --repository DIR -o root.proposal`,
  };
}
