// `writ key show`: prints the key of a key file, a .pub file or a PEM public key. Unlocks no secret key.
import { type PublicKey, readPublicKey } from '../../../publisher/keys/public-key.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { fingerprint } from '../../show/show-repository.js';

export const command: CommandDefinition = {
  examples: ['writ key show keys/anna.pub', 'writ key show yubikey-public.pem --json'],
  exitCodes: ['0  shown', '1  it cannot be read, or cannot be used as a key', '2  usage'],
  args: [['<file>', 'a .key or .pub file, or a PEM public key (Ed25519, ECDSA P-256, RSA)']],
  flags: {},
  run: async ([file = ''], _flags, { at }) => answer(file, readPublicKey(at(file))),
};

function answer(file: string, { key, keyId, name }: PublicKey): Answer {
  return {
    outcome: 'shown',
    details: { file, name, keyId, key },
    lines: [
      `SHOWN ${file}: public key of ${name} (${key.scheme})`,
      `  key id       ${keyId}`,
      `  fingerprint  ${fingerprint(keyId)}      compare it by voice with ${name}`,
    ],
  };
}
