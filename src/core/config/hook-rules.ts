// Rules for commands: the user and paths of their sandbox, their program, their patterns, and keys that would have no effect.
import { findGlobProblem } from '../text/glob-bounds.js';
import { sandboxKeys } from './config-schema.js';
import { asGroup, asList, at, type ConfigPath, type Finding, type Group, valuesAt } from './findings.js';

type DefaultPlaces = { readonly state: string; readonly run: string };

const hookPlaces = ['bundles.*.checks.*', 'workers.*.canary', 'workers.*.load', 'workers.*.probe'] as const;

/** @returns findings for the keys of checks, canaries, loaders and probes */
export function* sandboxRules(file: Group, defaults: DefaultPlaces): Generator<Finding> {
  const isOff = file['sandbox'] === 'off';
  const places = privatePlaces(file, defaults);
  for (const place of hookPlaces) {
    for (const { path, value } of valuesAt(file, place.split('.'))) {
      const hook = asGroup(value);
      yield* builtInRules(hook, path);
      if (hook['user'] === 'root' || hook['user'] === 0)
        yield at([...path, 'user'], 'must not be root: a command that judges policy runs without privileges');
      yield* outputRules(hook, path);
      yield* bindRules(hook, path, places);
      if (!isBuiltIn(hook) && (isOff || hook['sandbox'] === 'off'))
        yield* unusedKeyRules(hook, path, ['memory'], 'is only used in a sandbox, and it is off');
    }
  }
}

function isBuiltIn(check: Group): boolean {
  return check['parse'] !== undefined || check['change'] !== undefined;
}

/** Finds keys of commands in a built-in check, which runs no command. */
function* builtInRules(check: Group, path: ConfigPath): Generator<Finding> {
  if (check['parse'] !== undefined)
    yield* unusedKeyRules(check, path, ['reject', 'retry', 'notNow'], 'is only used with `run`');
  // A change check compares two lists of files: its time and memory do not depend on their content.
  if (check['change'] !== undefined)
    yield* unusedKeyRules(
      check,
      path,
      ['reject', 'retry', 'notNow', 'timeout', 'memory'],
      'is not used with `change`',
    );
}

/** Reports keys without effect, because an operator would rely on them. */
function* unusedKeyRules(
  hook: Group,
  path: ConfigPath,
  keys: readonly string[],
  why: string,
): Generator<Finding> {
  for (const key of [...keys, ...Object.keys(sandboxKeys)])
    if (hook[key] !== undefined) yield at([...path, key], why);
}

/** @returns a finding if the program of a command is neither a name nor an absolute path */
export function* programRule(run: unknown, path: ConfigPath): Generator<Finding> {
  const program = asList(run)[0];
  if (typeof program !== 'string') return;
  // A relative path would depend on the working directory of the agent.
  if (program === '' || (program.includes('/') && !program.startsWith('/'))) {
    yield at([...path, 0], 'must be a program by its name or its absolute path');
  }
}

/** Rules for the patterns that classify the output of a command: refusal, deferral or unreachable. */
function* outputRules(hook: Group, path: ConfigPath): Generator<Finding> {
  yield* patternRule(hook['reject'], [...path, 'reject']);
  yield* patternRule(asGroup(hook['unreachable'])['match'], [...path, 'unreachable', 'match']);
  yield* patternRule(asGroup(hook['notNow'])['match'], [...path, 'notNow', 'match']);
  if (hook['start'] === undefined) return;
  for (const name of ['unreachable', 'pidFile'])
    if (hook[name] !== undefined)
      yield at([...path, name], 'is only used with `run`: a started canary uses no other daemon');
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

/** @returns the paths that no command may bind, with the reason */
function privatePlaces(file: Group, defaults: DefaultPlaces): PrivatePlace[] {
  const { state = defaults.state, run = defaults.run, policy, socket } = file;
  return [
    [state, 'the state directory, which is private to the agent'],
    [policy, 'the policy directory, which the sandbox shows with the candidate'],
    [socket ?? (typeof run === 'string' ? `${run}/agent.sock` : undefined), 'the control socket'],
  ];
}

function* bindRules(hook: Group, path: ConfigPath, places: readonly PrivatePlace[]): Generator<Finding> {
  for (const key of ['binds', 'writable']) {
    for (const [index, bind] of asList(hook[key]).entries()) {
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
  return withFinalSlash(path).startsWith(withFinalSlash(directory));
}

/** @returns the path of a directory with one slash at its end and without double slashes */
export function withFinalSlash(path: string): string {
  return `${path.replaceAll(/\/+/g, '/').replace(/\/$/, '')}/`;
}

/** Rejects a glob that could block the agent for hours while it is matched. */
export function* globBoundRule(glob: unknown, path: ConfigPath): Generator<Finding> {
  const problem = typeof glob === 'string' ? findGlobProblem(glob) : undefined;
  if (problem !== undefined) yield at(path, problem);
}
