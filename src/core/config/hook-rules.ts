// Rules for what commands ask of their sandbox: who they may be, which paths they may be given, and that no key
// is written down where nothing would heed it.
import { findGlobProblem } from '../text/glob-bounds.js';
import { boxKeys } from './config-schema.js';
import { at, type ConfigPath, type Finding, type Group, group, list, valuesAt } from './findings.js';

type DefaultPlaces = { readonly state: string; readonly run: string };

const hookPlaces = ['bundles.*.checks.*', 'workers.*.canary', 'workers.*.load', 'workers.*.probe'] as const;

/** @returns what is wrong with the keys of commands that concern the sandbox */
export function* boxRules(file: Group, defaults: DefaultPlaces): Generator<Finding> {
  const isOff = file['sandbox'] === 'off';
  const places = privatePlaces(file, defaults);
  for (const place of hookPlaces) {
    for (const { path, value } of valuesAt(file, place.split('.'))) {
      const hook = group(value);
      yield* builtInRules(hook, path);
      if (hook['user'] === 'root' || hook['user'] === 0)
        yield at([...path, 'user'], 'must not be root: a policy is judged by nobody of power');
      yield* wordRules(hook, path);
      yield* bindRules(hook, path, places);
      if (!isBuiltIn(hook) && (isOff || hook['sandbox'] === 'off'))
        yield* unused(hook, path, ['memory'], 'is only used in a sandbox, and it is off');
    }
  }
}

function isBuiltIn(check: Group): boolean {
  return check['parse'] !== undefined || check['change'] !== undefined;
}

/** Keys of commands in a check that runs none. */
function* builtInRules(check: Group, path: ConfigPath): Generator<Finding> {
  if (check['parse'] !== undefined)
    yield* unused(check, path, ['reject', 'retry', 'notNow'], 'is only used with `run`');
  // It compares two lists of files: neither its time nor its memory grows with their content.
  if (check['change'] !== undefined)
    yield* unused(
      check,
      path,
      ['reject', 'retry', 'notNow', 'timeout', 'memory'],
      'is not used with `change`',
    );
}

/** A key that nothing heeds would be believed. */
function* unused(hook: Group, path: ConfigPath, keys: readonly string[], why: string): Generator<Finding> {
  for (const key of [...keys, ...Object.keys(boxKeys)])
    if (hook[key] !== undefined) yield at([...path, key], why);
}

/** @returns what is wrong with the program of a command */
export function* programRule(run: unknown, path: ConfigPath): Generator<Finding> {
  const program = list(run)[0];
  if (typeof program !== 'string') return;
  // A relative path would depend on where the agent was started.
  if (program === '' || (program.includes('/') && !program.startsWith('/'))) {
    yield at([...path, 0], 'must be a program by its name or its absolute path');
  }
}

/** What is said of a command's own words: which of them are a refusal, and which say that nobody was there. */
function* wordRules(hook: Group, path: ConfigPath): Generator<Finding> {
  yield* patternRule(hook['reject'], [...path, 'reject']);
  yield* patternRule(group(hook['unreachable'])['match'], [...path, 'unreachable', 'match']);
  yield* patternRule(group(hook['notNow'])['match'], [...path, 'notNow', 'match']);
  if (hook['start'] === undefined) return;
  for (const name of ['unreachable', 'pidFile'])
    if (hook[name] !== undefined)
      yield at([...path, name], 'is only used with `run`: a canary that is started speaks to itself');
}

function* patternRule(pattern: unknown, path: ConfigPath): Generator<Finding> {
  if (typeof pattern !== 'string') return;
  try {
    new RegExp(pattern, 'mu');
  } catch (error) {
    const { message } = error as SyntaxError;
    yield at(path, message.replace('Invalid regular', 'is not a regular'));
  }
}

type PrivatePlace = readonly [path: unknown, why: string];

/** What no command is shown, whatever its binds say. */
function privatePlaces(file: Group, defaults: DefaultPlaces): PrivatePlace[] {
  const { state = defaults.state, run = defaults.run, policy, socket } = file;
  return [
    [state, 'the state directory, whose files are for the agent alone'],
    [policy, 'the policy directory, which is shown as it will be'],
    [socket ?? (typeof run === 'string' ? `${run}/agent.sock` : undefined), 'the control socket'],
  ];
}

function* bindRules(hook: Group, path: ConfigPath, places: readonly PrivatePlace[]): Generator<Finding> {
  for (const key of ['binds', 'writable']) {
    for (const [index, bind] of list(hook[key]).entries()) {
      if (typeof bind !== 'string') continue;
      for (const [place, why] of places) {
        if (typeof place !== 'string' || !(isWithin(bind, place) || isWithin(place, bind))) continue;
        yield at([...path, key, index], `must not meet ${why} (${place})`);
        break;
      }
    }
  }
}

function isWithin(path: string, directory: string): boolean {
  return slashed(path).startsWith(slashed(directory));
}

/** @returns the path of a directory with one slash at its end, and nowhere two */
export function slashed(path: string): string {
  return `${path.replaceAll(/\/+/g, '/').replace(/\/$/, '')}/`;
}

/** The matcher would block the agent for hours. */
export function* globBoundRule(glob: unknown, path: ConfigPath): Generator<Finding> {
  const problem = typeof glob === 'string' ? findGlobProblem(glob) : undefined;
  if (problem !== undefined) yield at(path, problem);
}
