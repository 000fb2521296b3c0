// The flags of external signers: `--signer 'CMD'`, or `--signer 'ROLE=CMD'` for one role, as often as there are
// signers. What the program says to the person (touch it, enter the PIN) goes to stderr as it comes.
import { type Command, Option } from 'commander';
import { defaultSignerTimeoutMs, type ExternalCommand } from '../../publisher/keys/external-signer.js';
import type { CommandContext } from '../console/command.js';
import { durationFlag, repeatedText } from '../console/flag-values.js';

export interface SignerFlags {
  readonly signer?: readonly string[];
  readonly signerTimeout: number;
}

/** Adds --signer and --signer-timeout. */
export function addSignerFlags(command: Command): Command {
  const timeout = new Option('--signer-timeout <duration>', 'how long a signer may take');
  return command
    .option(
      '--signer <[role=]cmd>',
      'command that signs stdin, as of a device; may be repeated',
      repeatedText,
    )
    .addOption(timeout.argParser(durationFlag).default(defaultSignerTimeoutMs, '5m'));
}

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
      ...(directory === undefined ? {} : { directory }),
      onStderr,
      signal,
    };
  });
}
