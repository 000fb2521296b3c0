// The flags of external signers: `--signer 'CMD'`, or `--signer 'ROLE=CMD'` for one role, as often as there are
// signers. What the program says to the person (touch it, enter the PIN) goes to stderr as it comes.
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

/** @param serves roles that a command without ROLE= is asked for */
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
