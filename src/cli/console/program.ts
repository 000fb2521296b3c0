// Parses the command line with commander, from the table of commands; includes help and usage errors. Imports the module of a command
// only if its name was typed, so that `writ status` does not load the publisher. Prints nothing.
import { Argument, Command, CommanderError, Option } from '#commander';
import { WritError } from '../../core/errors.js';
import type { CommandDefinition, CommandEntry, Surroundings } from './command.js';
import { environmentName, refuseFormerNames } from './flag-environment.js';
import { type CommonFlags, commonFlags, type Flag } from './flags.js';
import { rootHelp, topicNames, topicText } from './help-topics.js';

/** The parsed command line: a command with its values, or a text to print. */
export type Invocation =
  | {
      readonly kind: 'command';
      readonly name: string;
      readonly definition: CommandDefinition;
      readonly args: readonly (string | undefined)[];
      readonly flags: CommonFlags;
    }
  | { readonly kind: 'text'; readonly text: string };

export interface ProgramSurroundings extends Pick<Surroundings, 'env' | 'stdout'> {
  /** Version of this program. */
  readonly version: string;
}

/**
 * Parses the command line. Runs no command; loads only the module of the command that is named.
 * @param argv arguments after the program's name
 * @param entries the table of commands
 * @returns `command` with its definition, arguments (undefined for an optional one that is missing) and flags; or `text` to
 *   print, for `--help`, `--version` and `help TOPIC`
 * @throws WritError USAGE for an unknown command, flag or topic, a missing or bad value, and a line without a command; its hint
 *   has commander's suggestion, else the flags or the help command
 */
export async function parseCommandLine(
  argv: readonly string[],
  entries: readonly CommandEntry[],
  surroundings: ProgramSurroundings,
): Promise<Invocation> {
  const texts: string[] = [];
  let invocation: Invocation | undefined;
  let typed: Typed | undefined;
  const program = createProgram(surroundings, (text) => texts.push(text));
  const listener: Listener = {
    typed: (name, command) => {
      typed = { name, command };
    },
    found: (one) => {
      invocation = one;
    },
  };
  for (const entry of entries) addEntry(program, entry, listener);
  const refuseFormer = (): void => {
    if (typed !== undefined) refuseFormerNames(typed.name, optionsLeft(typed.command), surroundings.env);
  };
  try {
    // `writ help publish` becomes `writ publish --help`, because commander's help would not import the module first.
    const [first, ...rest] = argv;
    const topic = first === 'help' ? await helpOn(rest, program) : undefined;
    if (topic !== undefined) return { kind: 'text', text: topic };
    await program.parseAsync(first === 'help' ? [...rest, '--help'] : [...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.missingMandatoryOptionValue') refuseFormer();
    if (error.exitCode === 0) return { kind: 'text', text: texts.join('') };
    throw typed === undefined ? usageError(error, groupTyped(program, argv)) : flagError(error, typed, argv);
  }
  if (invocation === undefined) return { kind: 'text', text: texts.join('') };
  refuseFormer();
  return invocation;
}

/** @returns the text of a topic or an error code; undefined for a command, whose help commander has. @throws WritError USAGE for other names */
async function helpOn([name]: readonly string[], program: Command): Promise<string | undefined> {
  if (name === undefined || name.startsWith('-') || program.commands.some((one) => one.name() === name))
    return undefined;
  const { codeText, nearCodes } = await import('./help-code.js');
  const text = topicText(name) ?? codeText(name);
  if (text !== undefined) return text;
  const near = nearCodes(name);
  const meant = near.length === 0 ? '' : `Did you mean ${near.join(' or ')}? `;
  throw new WritError('USAGE', `there is no help for ${name}`, {
    hint: `${meant}Topics: ${topicNames.join(', ')}. Commands: writ --help. Error codes: writ help CODE.`,
  });
}

/** A command that takes flags from the given environment too, under the names that the help shows. */
class WritCommand extends Command {
  /** Members that the type declarations of commander leave out. */
  declare emit: (event: string, value: string) => boolean;
  declare unknownOption: (flag: string) => never;
  readonly #env: Surroundings['env'];

  constructor(name: string | undefined, env: Surroundings['env']) {
    super(name);
    this.#env = env;
  }

  override createCommand(name?: string): Command {
    return new WritCommand(name, this.#env);
  }

  /** Overrides commander's method, which reads the environment of the process in place of the given one. */
  _parseOptionsEnv(): void {
    const left = optionsLeft(this);
    // An empty variable counts as unset, as for most programs.
    const fromEnvironment = ({ envVar = '' }: Option) => this.#env[envVar] || undefined;
    for (const option of left) {
      const value = fromEnvironment(option);
      const rivals = rivalsIn(this, option);
      if (value === undefined || !rivals.every((rival) => left.includes(rival))) continue;
      const rival = rivals.find((one) => fromEnvironment(one) !== undefined);
      if (rival !== undefined)
        throw new WritError('USAGE', `${option.envVar} and ${rival.envVar} are both set: unset one of them`);
      this.emit(`optionEnv:${option.name()}`, value);
    }
  }
}

/** @returns the alternative flags: a typed flag has precedence over the environment, also over that of its alternatives */
function rivalsIn(command: Command, { rivals = [] }: Flag<unknown>): readonly Option[] {
  return command.options.filter((one) => rivals.includes(one.attributeName()));
}

/** @returns the options without a value or with their default value */
function optionsLeft(command: Command): readonly Option[] {
  return command.options.filter((option) => {
    const source = command.getOptionValueSource(option.attributeName());
    return source === undefined || source === 'default';
  });
}

/** Copies a shared flag for this command, because each command has its own variable for it. */
function ownOption(command: string, shared: Option): Option {
  const envVar = environmentName(command, shared);
  return Object.assign(new Option(shared.flags, shared.description), shared, { envVar });
}

function createProgram(
  { version, env, stdout }: ProgramSurroundings,
  collect: (text: string) => void,
): Command {
  return new WritCommand('writ', env)
    .description('Delivers signed policy to hosts and proves that it took effect')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .addHelpText('after', rootHelp)
    .exitOverride()
    .configureOutput({
      writeOut: collect,
      writeErr: () => undefined,
      getOutHelpWidth: () => (stdout.isTTY ? stdout.columns : 80),
    });
}

interface Listener {
  /** Called with the typed command before its flags are read. */
  typed(name: string, command: Command): void;
  found(invocation: Invocation): void;
}

function addEntry(program: Command, entry: CommandEntry, { typed, found }: Listener): void {
  const tokens = entry.name.split(' ');
  const parent = tokens.length === 1 ? program : groupOf(program, tokens[0] ?? '');
  const sub = parent.command(tokens.at(-1) ?? '').description(entry.summary);
  if (entry.group !== undefined) (parent === program ? sub : parent).helpGroup(entry.group);
  if (parent !== program) parent.summary(parent.commands.map((one) => one.name()).join(', '));
  parent.hook('preSubcommand', async (_parent, chosen) => {
    if (chosen !== sub) return;
    const { command: definition } = await entry.load();
    completeCommand(sub, entry.name, definition);
    typed(entry.name, sub);
    sub.action(() => {
      const flags = sub.opts<CommonFlags>();
      found({ kind: 'command', name: entry.name, definition, args: sub.processedArgs, flags });
    });
  });
}

function groupOf(program: Command, name: string): Command {
  return program.commands.find((command) => command.name() === name) ?? program.command(name);
}

function completeCommand(sub: Command, name: string, definition: CommandDefinition): void {
  for (const [token, text, parse] of definition.args ?? []) {
    const argument = new Argument(token, text);
    sub.addArgument(parse === undefined ? argument : argument.argParser(parse));
  }
  const options: readonly Option[] = Object.values({ ...definition.flags, ...commonFlags });
  for (const option of options) sub.addOption(ownOption(name, option));
  const examples = definition.examples.map((line) => `  $ ${line}\n`).join('');
  const exitCodes = definition.exitCodes.map((line) => `  ${line}`).join('\n');
  sub.addHelpText('before', `Examples:\n${examples}`);
  sub.addHelpText('after', `\nExit codes:\n${exitCodes}`);
}

/** @returns the first argument in the form of a flag that the command does not have */
function findUnknownFlag(argv: readonly string[], { options }: Command): string | undefined {
  const end = argv.indexOf('--');
  const tokens = (end === -1 ? argv : argv.slice(0, end)).map((token) => token.split('=')[0] ?? '');
  return tokens.find((token) => token.startsWith('--') && !options.some(({ long }) => long === token));
}

function flagsOf({ options }: Command): string {
  return options.map(({ long, short }) => long ?? short).join(' ');
}

interface Typed {
  readonly name: string;
  readonly command: Command;
}

/** The error of a known command with wrong flags. A mistyped flag is reported before a missing one. */
function flagError(error: CommanderError, { name, command }: Typed, argv: readonly string[]): WritError {
  const isMissing = error.code === 'commander.missingMandatoryOptionValue';
  const strange = isMissing ? findUnknownFlag(argv, command) : undefined;
  const reported = strange === undefined ? error : refusalOf(strange, command);
  const isUnknown = reported.code === 'commander.unknownOption';
  return usageError(
    reported,
    command,
    isUnknown ? `The flags of writ ${name}: ${flagsOf(command)}.` : undefined,
  );
}

/** @returns the error of commander with its suggestion, which commander computes only when it throws */
function refusalOf(flag: string, command: Command): CommanderError {
  try {
    return (command as WritCommand).unknownOption(flag);
  } catch (error) {
    if (error instanceof CommanderError) return error;
    throw error;
  }
}

/** @returns the typed group of commands, such as `config`; otherwise the program */
function groupTyped(program: Command, [first]: readonly string[]): Command {
  return program.commands.find((one) => one.name() === first && one.commands.length > 0) ?? program;
}

/** @returns the command as typed, with its groups */
function splitArguments(command: Command): string {
  return command.parent === null ? 'writ' : `${splitArguments(command.parent)} ${command.name()}`;
}

/** @param hint used if commander has no suggestion */
function usageError(error: CommanderError, parent: Command, hint?: string): WritError {
  if (error.code === 'commander.help') return commandMissing(parent);
  const [message = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const suggestion = rest.join(' ').trim();
  return suggestion === ''
    ? new WritError('USAGE', message, { hint: hint ?? `Run ${splitArguments(parent)} --help.` })
    : new WritError('USAGE', message, { hint: suggestion.replace(/^\((.*)\)$/, '$1') });
}

/** Names the commands of a group; the program has too many for one line. */
function commandMissing(parent: Command): WritError {
  const tokens = splitArguments(parent);
  if (parent.parent === null)
    return new WritError('USAGE', `${tokens} needs a command`, {
      hint: 'On a host begin with `writ status`, to sign policy with `writ init`. All commands: `writ --help`.',
    });
  const names = parent.commands.map((command) => command.name()).join(', ');
  return new WritError('USAGE', `${tokens} needs a command: ${names}`, { hint: `Run ${tokens} --help.` });
}
