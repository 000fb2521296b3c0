// From the text of the configuration file to an AgentConfig with its defaults: YAML, schema, rules, then values.
// Finds every mistake at once, each with its line. Reads no file, no environment and no clock.

import { given } from '../given.js';
import { everyMistake, validatorOf } from '../schema/own-schemas.js';
import type { AgentConfig, ProcessConfig } from './config.js';
import { type ConfigMistake, findingOf, pointerOf } from './config-errors.js';
import type { ProcessFile } from './config-keys.js';
import { checkRules, driversOf, type RuleOptions } from './config-rules.js';
import { type ConfigFile, configSchema, type DriverSchema, driverSchemaOf } from './config-schema.js';
import { readConfigText } from './config-text.js';
import { buildConfig, type ConfigDefaults } from './config-values.js';
import { type GroupVerdicts, warningsOf } from './config-warnings.js';
import {
  at,
  type ConfigCode,
  type ConfigPath,
  copyData,
  type Finding,
  type Group,
  group,
  list,
  renameKey,
} from './findings.js';
import { buildProcess } from './process-rules.js';
import { type HostLook, toleratedRules } from './tolerated-rules.js';

/** What making a driver shows. */
export type DriverTrial =
  | {
      readonly kind: 'made';
      readonly canRestart: boolean;
      /** What its answer is worth (workers/contract/driver.ts). */
      readonly verdictClass?: GroupVerdicts[number] | undefined;
      /** Whether it can tell one process of a worker from another. */
      readonly hasIdentity?: boolean;
    }
  /** `text`: what its schema could not say. */
  | { readonly kind: 'refused'; readonly code: ConfigCode; readonly text: string };

/** What a driver is given beside its options. */
export interface TrialPlace {
  readonly runDirectory: string;
  readonly process?: ProcessConfig;
}

export interface ParseConfigOptions extends Omit<RuleOptions, 'defaults'> {
  readonly defaults: ConfigDefaults;
  /** Makes a driver from a `reset:` that its schema accepted, and opens nothing; left out: no driver is made. */
  readonly tryDriver?: (driver: string, reset: Group, place: TrialPlace) => DriverTrial;
  /** Left out: nothing is asked of the host. */
  readonly look?: HostLook;
}

export type ParsedConfig =
  | {
      readonly ok: true;
      readonly config: AgentConfig;
      /** What a start takes, and `writ config check` refuses. */
      readonly tolerated: readonly ConfigMistake[];
      /** Nothing wrong, but worth a look. */
      readonly warnings: readonly ConfigMistake[];
      /** Pointers of the keys that the file sets; the rest are defaults. */
      readonly given: readonly string[];
    }
  | {
      readonly ok: false;
      readonly mistakes: readonly ConfigMistake[];
      readonly tolerated: readonly ConfigMistake[];
    };

const maxMistakes = 100;

/**
 * @param text YAML, at most 1 MB
 * @returns the configuration, or at most 100 mistakes in the order of the file. Their codes: CONFIG_SYNTAX (then
 * nothing else was looked at), CONFIG_INVALID, SOCKET_PATH_TOO_LONG
 */
export function parseConfig(text: string, options: ParseConfigOptions): ParsedConfig {
  const read = readConfigText(text);
  if (!read.ok) return { ...read, tolerated: [] };
  const { data, typos, typedPath } = supposeMeantKeys(read.data, options.drivers);
  const locate = (finding: Finding): ConfigMistake =>
    read.locate({ ...finding, path: typedPath(finding.path) });
  const found = [...typos, ...checkSchema(data, options.drivers), ...checkRules(data, options)];
  const trials = tryDrivers(data, found, options);
  const findings = [...found, ...trials.flatMap(({ findings: own }) => own)];
  const mistakes = inOrder(findings.map(locate));
  const tolerated = inOrder([...toleratedRules(data, options.defaults.root, options.look)].map(locate)).slice(
    0,
    maxMistakes,
  );
  if (mistakes.length > 0) return { ok: false, mistakes: mistakes.slice(0, maxMistakes), tolerated };
  const verdicts = trials.map(({ verdict }) => verdict);
  const areUnseen = trials.map(({ isUnseen = false }) => isUnseen);
  const file = read.data as ConfigFile;
  return {
    ok: true,
    config: buildConfig(file, { drivers: options.drivers, defaults: options.defaults }),
    tolerated,
    warnings: inOrder(warningsOf(file, { verdicts, areUnseen }, options.look).map(read.locate)),
    given: givenIn(file, []),
  };
}

/** A mistyped key in a mistyped key is found in the second round. */
const maxRounds = 8;

/**
 * Renames each unknown key to the known one that is near it, because mistakes below it would be found only in the next run.
 * @returns the renamed data, the mistyped keys as findings, and the way from a path of the data to that of the file
 */
function supposeMeantKeys(data: unknown, drivers: readonly DriverSchema[]) {
  const renamed = copyData(data);
  const typos: Finding[] = [];
  const typed = new Map<string, string | number>();
  for (let round = 0; round < maxRounds; round++) {
    const before = typos.length;
    for (const typo of checkSchema(renamed, drivers)) {
      const { path, meant } = typo;
      if (meant === undefined || !renameKey(renamed, path, meant)) continue;
      typos.push(typo);
      typed.set(pointerOf([...path.slice(0, -1), meant]), path.at(-1) ?? '');
    }
    if (typos.length === before) break;
  }
  const typedPath = (path: ConfigPath): ConfigPath =>
    path.map((part, index) => typed.get(pointerOf(path.slice(0, index + 1))) ?? part);
  return { data: renamed, typos, typedPath };
}

function checkSchema(data: unknown, drivers: readonly DriverSchema[]): Finding[] {
  const check = (schema: object, value: unknown, base: ConfigPath): Finding[] => {
    if (validatorOf(schema)(value)) return [];
    return everyMistake(schema, value).flatMap((error) => findingOf(error, base) ?? []);
  };
  const findings = check(configSchema, data, []);
  for (const [index, worker] of workersOf(data).entries()) {
    const [driver, ...others] = driversOf(worker['reset'], drivers);
    if (driver === undefined || others.length > 0) continue;
    findings.push(...check(driverSchemaOf(driver), worker['reset'], ['workers', index, 'reset']));
  }
  return findings;
}

function workersOf(data: unknown): Group[] {
  return list(group(data)['workers']).map(group);
}

interface GroupTrial {
  readonly findings: readonly Finding[];
  readonly verdict?: GroupVerdicts[number] | undefined;
  readonly isUnseen?: boolean;
}

/** What only the drivers themselves know, a group each; one with another mistake is tried when that is repaired. */
function tryDrivers(
  data: unknown,
  found: readonly Finding[],
  { drivers, defaults, tryDriver }: ParseConfigOptions,
): GroupTrial[] {
  const { run } = group(data);
  return workersOf(data).map((worker, index) => {
    const [driver] = driversOf(worker['reset'], drivers);
    const isWrong = found.some(({ path }) => path[0] === 'workers' && path[1] === index);
    if (driver === undefined || isWrong || tryDriver === undefined) return { findings: [] };
    const process = worker['process'] as ProcessFile | undefined;
    const place: TrialPlace = {
      runDirectory: typeof run === 'string' ? run : defaults.run,
      ...given({ process: process && buildProcess(process) }),
    };
    const trial = tryDriver(driver.name, group(worker['reset']), place);
    const path = ['workers', index];
    if (trial.kind === 'made') {
      const findings = trial.canRestart ? [] : [...restartRules(worker, driver.name, path)];
      return { findings, verdict: trial.verdictClass, isUnseen: trial.hasIdentity === false };
    }
    const { code, text } = trial;
    return { findings: [{ path: [...path, 'reset'], at: 'key', text, code }] };
  });
}

/** What is asked of a driver that it has not would show itself in the night in which it is needed. */
function* restartRules(worker: Group, driver: string, path: ConfigPath): Generator<Finding> {
  const text = `the driver ${driver} cannot restart a worker`;
  if (group(worker['when'])['restart'] !== undefined) yield at([...path, 'when', 'restart'], text);
  if (worker['onDead'] === 'restart') yield at([...path, 'onDead'], text);
}

/** Pointers of what is set; a list counts as one value. */
function givenIn(value: unknown, path: ConfigPath): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [pointerOf(path)];
  return Object.entries(value).flatMap(([key, inner]) => givenIn(inner, [...path, key]));
}

/** In the order of the file, each line of text once: allErrors says some things twice. */
export function inOrder(mistakes: readonly ConfigMistake[]): ConfigMistake[] {
  const unique = new Map(mistakes.map((one) => [`${one.pointer} ${one.text}`, one]));
  return [...unique.values()].sort((a, b) => a.line - b.line || a.column - b.column);
}
