// The flags of external signers: `--signer 'CMD'`, or `--signer 'ROLE=CMD'` for one role, repeated for each signer.
// Messages of the command to the operator (touch the device, enter the PIN) are printed on stderr immediately.
import { defaultSignerTimeoutMs, type ExternalCommand } from '../../publisher/keys/external-signer.js';
import type { CommandContext } from '../console/command.js';
import { durationFlag, repeatedText } from '../console/flag-values.js';
import { type FlagValues, optional, preset } from '../console/flags.js';

export const signerFlags = {
  signer: optional(
    '--signer <[role=]cmd>',
    'command that signs stdin, as of a device; may be repeated',
    repeatedText,
  ),
  signerTimeout: preset(
    '--signer-timeout <duration>',
    'how long a signer may take',
    defaultSignerTimeoutMs,
    durationFlag,
    '5m',
  ),
};

export type SignerFlags = FlagValues<typeof signerFlags>;

/**
 * Translates each --signer flag into a command that signs. Runs nothing, and throws nothing.
 * @param serves true for the roles that a command without ROLE= may sign
 * @returns the commands in the order of the flags, with duplicates; empty without the flag. `targets=./sign` is the command
 *   `./sign`, and signs only for `targets`; text without such a prefix is the command unchanged
 */
export function externalCommands(
  { signer = [], signerTimeout }: SignerFlags,
  { env, reporter, signal, surroundings: { directory } }: CommandContext,
  serves: (role: string) => boolean,
): ExternalCommand[] {
  const onStderr = (text: string): void => {
    for (const line of text.split('\n').filter((one) => one.trim() !== '')) reporter.note(line);
  };
  return signer.map((text) => {
    const [, only, rest] = /^([a-z][a-z0-9._-]*)=(?=\S)(.*)$/s.exec(text) ?? [];
    const command = rest ?? text;
    const servesOnly = (role: string): boolean => role === only;
    return {
      command,
      serves: only === undefined ? serves : servesOnly,
      env,
      timeoutMs: signerTimeout,
      directory,
      onStderr,
      signal,
    };
  });
}
