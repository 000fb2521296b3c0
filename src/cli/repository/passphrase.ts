// Gets the passphrase of keys from --passphrase-file, --passphrase-command, WRIT_PASSPHRASE, or a prompt at the terminal.
// Never from an argument, which every process can read. Prompts go to stderr. The prompt module is loaded only when it is
// needed.
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { isSystemError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { runCommand } from '../../platform/process/run-command.js';
import type { PassphraseSource } from '../../publisher/keys/key-directory.js';
import type { CommandContext } from '../console/command.js';
import { type FlagValues, optional } from '../console/flags.js';

export const passphraseFlags = {
  passphraseFile: optional('--passphrase-file <file>', 'file with the passphrase of the keys; - is stdin'),
  passphraseCommand: optional(
    '--passphrase-command <cmd>',
    'command that writes the passphrase, for example of a password manager',
  ),
};

export type PassphraseFlags = FlagValues<typeof passphraseFlags>;

const maxAttempts = 3;

/** For present keys. The passphrase that was typed for one key is tried first for the next. */
export function passphrasesFor(flags: PassphraseFlags, context: CommandContext): PassphraseSource {
  // Asked only for the first locked key, because a command may open the operator's password manager.
  let asked: Promise<string | undefined> | undefined;
  let typed: string | undefined;
  return {
    ask: async (path, attempt) => {
      asked ??= givenPassphrase(flags, context);
      const passphrase = await asked;
      if (passphrase !== undefined) return attempt === 1 ? passphrase : undefined;
      if (attempt === 1 && typed !== undefined) return typed;
      if (!context.canAsk || attempt > maxAttempts) return undefined;
      const again = attempt > 1 ? 'Wrong passphrase. ' : '';
      typed = await prompt(`${again}Passphrase for ${path}:`, context);
      return typed;
    },
  };
}

/** `madeUp`: the passphrase was generated, and must be shown once. */
export type NewPassphrase = Awaited<ReturnType<typeof newPassphrase>>;

/** @returns a line with the passphrase, if Writ generated it; no line for a chosen one and for unencrypted keys */
export function generatedLines(title: string, chosen: NewPassphrase | undefined): string[] {
  return chosen?.madeUp ? [`${title}  ${chosen.passphrase}      shown once: write it down`] : [];
}

/**
 * A passphrase for new keys: given by a flag or variable, typed twice, or generated after an empty one.
 * @param what as `the new keys`, for the prompt
 * @returns passphrase; madeUp: true for a generated one
 * @throws WritError PASSPHRASE_NEEDED without a terminal, or after three pairs that differ; INTERRUPTED
 */
export async function newPassphrase(flags: PassphraseFlags, context: CommandContext, what = 'the new keys') {
  const passphrase = await givenPassphrase(flags, context);
  if (passphrase !== undefined) return { passphrase, madeUp: false };
  if (!context.canAsk) {
    throw new WritError(
      'PASSPHRASE_NEEDED',
      `a passphrase is needed for ${what}, and there is no terminal to ask on`,
      {
        hint: 'Give --passphrase-file F, set WRIT_PASSPHRASE, or give --no-passphrase.',
      },
    );
  }
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const first = await prompt(`Passphrase for ${what} (empty = generate one):`, context);
    if (first === '') return { passphrase: generatePassphrase(), madeUp: true };
    if (first === (await prompt('Repeat it:', context))) return { passphrase: first, madeUp: false };
  }
  throw new WritError('PASSPHRASE_NEEDED', 'the two passphrases did not match');
}

async function givenPassphrase(
  { passphraseFile, passphraseCommand }: PassphraseFlags,
  context: CommandContext,
): Promise<string | undefined> {
  const { env } = context;
  if (passphraseFile !== undefined) return readPassphrase(passphraseFile, context);
  if (passphraseCommand !== undefined) return runPassphraseCommand(passphraseCommand, context);
  const fromEnvironment = env['WRIT_PASSPHRASE'];
  return fromEnvironment === '' ? undefined : fromEnvironment;
}

/** Long enough to unlock a password manager first. */
const passphraseCommandMs = 120_000;

async function runPassphraseCommand(
  command: string,
  { env, signal, surroundings: { directory } }: CommandContext,
): Promise<string> {
  const result = await runCommand({
    argv: ['/bin/sh', '-c', command],
    env: given(env) as Record<string, string>,
    ...given({ cwd: directory }),
    timeoutMs: passphraseCommandMs,
    maxOutputBytes: maxPassphraseBytes + 2,
    signal,
  });
  if (result.kind === 'exited' && result.exitCode === 0 && !result.truncated) {
    const passphrase = result.stdout.replace(/\r?\n$/, '');
    if (passphrase !== '') return passphrase;
  }
  const end = result.kind === 'exited' ? `exit ${result.exitCode}` : result.kind;
  // The error contains neither stream, because the output may be the passphrase.
  throw new WritError('PASSPHRASE_NEEDED', `the passphrase command returned no passphrase (${end})`, {
    hint: 'Run it by hand; it must write the passphrase to stdout, at most 4096 bytes, and exit with 0.',
  });
}

const maxPassphraseBytes = 4096;

function readPassphrase(path: string, { at }: CommandContext): string {
  try {
    const text = path === '-' ? readFileSync(0, 'utf8') : readPassphraseFile(at(path));
    const passphrase = text.replace(/\r?\n$/, '');
    if (passphrase !== '' && Buffer.byteLength(passphrase) <= maxPassphraseBytes) return passphrase;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new WritError('PASSPHRASE_NEEDED', `${path} cannot be read: ${error.code}`, { facts: { path } });
  }
  throw new WritError('PASSPHRASE_NEEDED', `${path} is empty or too long for a passphrase`, {
    facts: { path },
  });
}

/** Accepts a pipe, as of `<(pass show writ)`. */
function readPassphraseFile(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY);
  try {
    return fstatSync(descriptor).size > maxPassphraseBytes + 2 ? '' : readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/** 125 bits, in groups that are easy to read out and type. */
function generatePassphrase(): string {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789';
  const characters = [...randomBytes(25)].map((byte) => letters[byte % letters.length]);
  return (characters.join('').match(/.{5}/g) ?? []).join('-');
}

async function prompt(message: string, { signal, reporter, surroundings }: CommandContext): Promise<string> {
  // Ends the line of the running step, so that the prompt starts on a new line.
  reporter.drop('passphrase');
  const { default: password } = await import('@inquirer/password');
  try {
    return await password(
      { message, mask: false },
      { input: surroundings.stdin, output: surroundings.stderr, clearPromptOnDone: true, signal },
    );
  } catch (error) {
    if (error instanceof Error && error.name === 'ExitPromptError') {
      throw new WritError('INTERRUPTED', 'the passphrase was not given', { cause: error });
    }
    throw error;
  }
}
