// Builders for the table of flags of a command: options of commander, with the type of each value for the compiler. flag-values parses
// the values.
import { InvalidArgumentError, Option } from '#commander';

/** An option of commander. `value` is never there: the compiler takes the type of the flag's value from it. */
export type Flag<Value> = Option & {
  readonly value?: Value;
  /** Names of alternative flags. If one of them was typed, the variable of this flag is not read. */
  readonly rivals?: readonly string[];
};

/** A flag for each value, under its name, as `lockWait` for --lock-wait. */
export type FlagTable<Values> = { readonly [Name in keyof Values]: Flag<Values[Name]> };

/** The values of the flags of a table. */
export type FlagValues<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Flag<infer Value> ? Value : never;
};

type Parser<Value> = (text: string, before?: Value) => Value;

/** @returns a flag without a value */
export function toggle(flags: string, text: string): Flag<boolean | undefined> {
  return new Option(flags, text);
}

/** @returns a flag that may be left out. @param parse left out: its value is the text */
export function optional<Value = string>(
  flags: string,
  text: string,
  parse: Parser<Value> = asTyped,
): Flag<Value | undefined> {
  return new Option(flags, text).argParser<Value>((typed, before) => parse(written(typed), before));
}

function asTyped<Value>(text: string): Value {
  return text as Value;
}

/** Rejects an empty value: an unset variable of a script causes one, and as a path it would be the working directory. */
function written(text: string): string {
  if (text !== '') return text;
  throw new InvalidArgumentError('It is empty.');
}

/** @returns a flag without which the command does nothing */
export function required<Value = string>(flags: string, text: string, parse?: Parser<Value>): Flag<Value> {
  const option = optional(flags, text, parse).makeOptionMandatory();
  return option as Flag<Value>;
}

/** @returns a flag with a default value. @param shown the text of the default value in the help */
export function preset<Value>(
  flags: string,
  text: string,
  value: Value,
  parse?: Parser<Value>,
  shown?: string,
): Flag<Value> {
  const option = optional(flags, text, parse).default(value, shown);
  return option as Flag<Value>;
}

/** @returns the flag with alternatives: its variable is not read if one of them was typed. @param rivals such as `tokenFile` */
export function besides<Value>(flag: Flag<Value>, ...rivals: readonly string[]): Flag<Value> {
  return Object.assign(flag, { rivals });
}

const color: Flag<'auto' | 'always' | 'never'> = new Option('--color <when>', 'colours');

/** The flags of every command. */
export const commonFlags = {
  json: toggle('--json', 'print one JSON object on stdout, also on failure'),
  quiet: toggle('-q, --quiet', 'only the outcome; nothing if the exit code is the answer'),
  verbose: toggle(
    '-v, --verbose',
    'each step, when it begins, the total time, and where an error comes from',
  ),
  color: color.choices(['auto', 'always', 'never']).default('auto').env('WRIT_COLOR'),
  input: toggle('--no-input', 'never ask; fail and name the missing flag'),
};

export type CommonFlags = FlagValues<typeof commonFlags>;
