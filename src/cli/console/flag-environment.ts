// The environment variable of a flag: WRIT_<COMMAND>_<FLAG>, derived from the table of commands, so that the variable of one command
// does not affect another. Also knows the variables that several commands share, and those of older versions: a set variable of an
// older version is an error and has no other effect. Pure.
import type { Option } from '#commander';
import { WritError } from '../../core/errors.js';
import type { Surroundings } from './command.js';

/** Variables that Writ sets for the programs that it runs. A flag with one of these names has no variable. */
export const namesOfPrograms: ReadonlySet<string> = new Set([
  'WRIT_SIGN_FILE',
  'WRIT_SIGN_ROLE',
  'WRIT_SIGN_KEYIDS',
]);

/** Former variables of `writ fleet serve` that were not WRIT_<FLAG>. */
const formerOfFleetServe: Readonly<Record<string, string>> = {
  repository: 'WRIT_FLEET_REPOSITORY',
  root: 'WRIT_FLEET_ROOT',
  state: 'WRIT_FLEET_STATE',
};

/**
 * @param command such as `withdraw` or `repo status`
 * @returns the variable of this flag; undefined for a flag without a value, and for a name that has another meaning
 */
export function environmentName(command: string, option: Option): string | undefined {
  if (!takesValue(option)) return undefined;
  const name = option.envVar ?? ownName(command, option);
  return namesOfPrograms.has(name) ? undefined : name;
}

/** @returns the variable of older versions for this flag; undefined for a flag without a value or with a shared variable */
export function formerName(command: string, option: Option): string | undefined {
  const isShared = option.envVar !== undefined && option.envVar !== ownName(command, option);
  if (!takesValue(option) || isShared) return undefined;
  const own = command === 'fleet serve' ? formerOfFleetServe[option.attributeName()] : undefined;
  return own ?? `WRIT_${flagSuffix(option)}`;
}

/**
 * @param left the flags that neither the command line nor their own variable gives
 * @throws WritError USAGE for a variable that an older version would have read here
 */
export function refuseFormerNames(command: string, left: readonly Option[], env: Surroundings['env']): void {
  for (const option of left) {
    const former = formerName(command, option);
    if (former === undefined || env[former] === undefined) continue;
    const name = environmentName(command, option);
    const instead = name === undefined ? `Give ${option.long}` : `Set ${name}, or give ${option.long}`;
    throw new WritError('USAGE', `${former} is set, and writ ${command} does not read it`, {
      hint: `${instead}; unset ${former}. See writ help environment.`,
      facts: { actual: former, ...(name === undefined ? {} : { expected: name }) },
    });
  }
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function ownName(command: string, option: Option): string {
  return `WRIT_${screaming(command)}_${flagSuffix(option)}`;
}

function flagSuffix(option: Option): string {
  return screaming(option.attributeName().replace(/[A-Z]/g, (letter) => ` ${letter}`));
}

function screaming(name: string): string {
  return name.replace(/[ -]/g, '_').toUpperCase();
}
