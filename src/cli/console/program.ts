// The command line as commander sees it, built from the table of commands. A command's module is imported
// when its name was typed and not before, so that `writ status` never loads the publisher.
// Owns parsing, help and usage errors; it writes nothing and decides no outcome.
import { Argument, Command, CommanderError, type Option } from '#commander';
import { WritError } from '../../core/errors.js';
import type { CommandDefinition, CommandEntry, Surroundings } from './command.js';
import { type CommonFlags, commonFlags } from './flags.js';
import { rootHelp, topicNames, topicText } from './help-topics.js';

/** What was typed, understood: a command with its values, or a text to show. */
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
  /** Of this program. */
  readonly version: string;
}

/**
 * @param argv arguments after the program's name
 * @param entries the table of commands
 * @throws WritError USAGE, with commander's suggestion as the hint where it has one
 */
export async function parseCommandLine(
  argv: readonly string[],
  entries: readonly CommandEntry[],
  surroundings: ProgramSurroundings,
): Promise<Invocation> {
  const texts: string[] = [];
  let invocation: Invocation | undefined;
  const program = createProgram(surroundings, (text) => texts.push(text));
  for (const entry of entries) {
    addEntry(program, entry, (found) => {
      invocation = found;
    });
  }
  try {
    // `writ help publish` is `writ publish --help`: commander's own would not import the command first.
    const [first, ...rest] = argv;
    const topic = first === 'help' ? helpOn(rest, program) : undefined;
    if (topic !== undefined) return { kind: 'text', text: topic };
    await program.parseAsync(first === 'help' ? [...rest, '--help'] : [...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw usageError(error, groupTyped(program, argv));
  }
  return invocation ?? { kind: 'text', text: texts.join('') };
}

/** @returns the text of a topic; undefined where commander has the help. @throws WritError USAGE for what is neither */
function helpOn([name]: readonly string[], program: Command): string | undefined {
  if (name === undefined || name.startsWith('-') || program.commands.some((one) => one.name() === name))
    return undefined;
  const text = topicText(name);
  if (text !== undefined) return text;
  throw new WritError('USAGE', `there is no help on ${name}`, {
    hint: `Topics: ${topicNames.join(', ')}. Commands: writ --help.`,
  });
}

/** Every flag with a value can also come from the environment as WRIT_<FLAG>; the help shows the name. */
class WritCommand extends Command {
  /** Its declarations leave out that a command is an EventEmitter. */
  declare emit: (event: string, value: string) => boolean;
  readonly #env: Surroundings['env'];

  constructor(name: string | undefined, env: Surroundings['env']) {
    super(name);
    this.#env = env;
  }

  override addOption(option: Option): this {
    const valued = option.required || option.optional;
    if (valued && option.envVar === undefined) option.env(`WRIT_${screaming(option.attributeName())}`);
    return super.addOption(option);
  }

  override createCommand(name?: string): Command {
    return new WritCommand(name, this.#env);
  }

  /** In place of commander's own, which reads the environment of the process whatever we were given. */
  _parseOptionsEnv(): void {
    for (const option of this.options) {
      const value = option.envVar === undefined ? undefined : this.#env[option.envVar];
      const source = this.getOptionValueSource(option.attributeName());
      const isFree = source === undefined || source === 'default';
      if (value !== undefined && isFree) this.emit(`optionEnv:${option.name()}`, value);
    }
  }
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

function addEntry(program: Command, entry: CommandEntry, found: (invocation: Invocation) => void): void {
  const words = entry.name.split(' ');
  const parent = words.length === 1 ? program : groupOf(program, words[0] ?? '');
  const sub = parent.command(words.at(-1) ?? '').description(entry.summary);
  if (entry.group !== undefined) (parent === program ? sub : parent).helpGroup(entry.group);
  if (parent !== program) parent.summary(parent.commands.map((one) => one.name()).join(', '));
  parent.hook('preSubcommand', async (_parent, chosen) => {
    if (chosen !== sub) return;
    const { command: definition } = await entry.load();
    completeCommand(sub, definition);
    sub.action(() => {
      const flags = sub.opts<CommonFlags>();
      found({ kind: 'command', name: entry.name, definition, args: sub.processedArgs, flags });
    });
  });
}

function groupOf(program: Command, name: string): Command {
  return program.commands.find((command) => command.name() === name) ?? program.command(name);
}

function completeCommand(sub: Command, definition: CommandDefinition): void {
  for (const [name, text, parse] of definition.args ?? []) {
    const argument = new Argument(name, text);
    sub.addArgument(parse === undefined ? argument : argument.argParser(parse));
  }
  const options: readonly Option[] = Object.values({ ...definition.flags, ...commonFlags });
  for (const option of options) sub.addOption(option);
  const examples = definition.examples.map((line) => `  $ ${line}\n`).join('');
  const exitCodes = definition.exitCodes.map((line) => `  ${line}`).join('\n');
  sub.addHelpText('before', `Examples:\n${examples}`);
  sub.addHelpText('after', `\nExit codes:\n${exitCodes}`);
}

function screaming(camelCase: string): string {
  return camelCase.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** @returns the group whose name was typed, as `config`, or the program */
function groupTyped(program: Command, [first]: readonly string[]): Command {
  return program.commands.find((one) => one.name() === first && one.commands.length > 0) ?? program;
}

function usageError(error: CommanderError, parent: Command): WritError {
  if (error.code === 'commander.help') {
    const words = parent.parent === null ? 'writ' : `writ ${parent.name()}`;
    const names = parent.commands.map((command) => command.name()).join(', ');
    return new WritError('USAGE', `${words} needs a command: ${names}`, { hint: `Run ${words} --help.` });
  }
  const [message = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const suggestion = rest.join(' ').trim();
  return suggestion === ''
    ? new WritError('USAGE', message)
    : new WritError('USAGE', message, { hint: suggestion.replace(/^\((.*)\)$/, '$1') });
}
