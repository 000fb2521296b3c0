// Parses the text of a configuration file to an AgentConfig: YAML, schema, rules, then values. One run finds every mistake,
// each with its line. Reads no file, no environment and no clock.

import { given } from '../given.js';
import { everyMistake, validatorOf } from '../schema/own-schemas.js';
import type { AgentConfig, ProcessConfig } from './config.js';
import { type ConfigMistake, pointerOf, schemaFinding } from './config-errors.js';
import type { ProcessFile } from './config-keys.js';
import { checkRules, namedDrivers, type RuleOptions } from './config-rules.js';
import { type ConfigFile, configSchema, type DriverSchema, driverSchemaOf } from './config-schema.js';
import { readConfigText } from './config-text.js';
import { buildConfig, type ConfigDefaults } from './config-values.js';
import { configWarnings, type GroupVerdicts } from './config-warnings.js';
import {
  asGroup,
  asList,
  at,
  type ConfigCode,
  type ConfigPath,
  copyData,
  type Finding,
  type Group,
  renameKey,
} from './findings.js';
import { buildProcess } from './process-rules.js';
import { type HostFactSource, toleratedRules } from './tolerated-rules.js';

/** The result of creating a driver. */
export type DriverTrial =
  | {
      readonly kind: 'made';
      readonly canRestart: boolean;
      /** Its verdict class (workers/contract/driver.ts). */
      readonly verdictClass?: GroupVerdicts[number] | undefined;
      /** Whether it can distinguish a process of a worker from a later one. */
      readonly hasIdentity?: boolean;
    }
  /** `text`: why the driver rejects options that its schema accepts. */
  | { readonly kind: 'refused'; readonly code: ConfigCode; readonly text: string };

/** The arguments of a driver other than its options. */
export interface TrialPlace {
  readonly runDirectory: string;
  readonly process?: ProcessConfig;
}

export interface ParseConfigOptions extends Omit<RuleOptions, 'defaults'> {
  readonly defaults: ConfigDefaults;
  /** Creates a driver from a `reset:` that its schema accepted, without opening files or sockets; absent: no driver is created. */
  readonly tryDriver?: (driver: string, reset: Group, place: TrialPlace) => DriverTrial;
  /** Absent: rules about the host are skipped. */
  readonly hostFacts?: HostFactSource;
}

export type ParsedConfig =
  | {
      readonly ok: true;
      readonly config: AgentConfig;
      /** Mistakes that a start accepts, and `writ config check` rejects. */
      readonly tolerated: readonly ConfigMistake[];
      /** Settings that are valid and probably not intended. */
      readonly warnings: readonly ConfigMistake[];
      /** JSON pointers of the keys that the file sets; all others have defaults. */
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
 * @returns the configuration, or at most 100 mistakes in the order of the file. Their codes: CONFIG_SYNTAX (then schema
 * and rules were not applied), CONFIG_INVALID, SOCKET_PATH_TOO_LONG
 */
export function parseConfig(text: string, options: ParseConfigOptions): ParsedConfig {
  const read = readConfigText(text);
  if (!read.ok) return { ...read, tolerated: [] };
  const { data, typos, writtenPath } = correctMistypedKeys(read.data, options.drivers);
  const locate = (finding: Finding): ConfigMistake =>
    read.locate({ ...finding, path: writtenPath(finding.path) });
  const found = [...typos, ...checkSchema(data, options.drivers), ...checkRules(data, options)];
  const trials = tryDrivers(data, found, options);
  const findings = [...found, ...trials.flatMap(({ findings: own }) => own)];
  const mistakes = sortMistakes(findings.map(locate));
  const tolerated = sortMistakes(
    [...toleratedRules(data, options.defaults.root, options.hostFacts)].map(locate),
  ).slice(0, maxMistakes);
  if (mistakes.length > 0) return { ok: false, mistakes: mistakes.slice(0, maxMistakes), tolerated };
  const verdicts = trials.map(({ verdict }) => verdict);
  const areProcessesUnknown = trials.map(({ isProcessUnknown = false }) => isProcessUnknown);
  const file = read.data as ConfigFile;
  return {
    ok: true,
    config: buildConfig(file, { drivers: options.drivers, defaults: options.defaults }),
    tolerated,
    warnings: sortMistakes(
      configWarnings(file, { verdicts, areProcessesUnknown }, options.hostFacts).map(read.locate),
    ),
    given: pointersOfSetKeys(file, []),
  };
}

/** A mistyped key inside a mistyped key needs a second round. */
const maxRounds = 8;

/**
 * Renames each unknown key to the nearest known key. Otherwise mistakes below the key would be found only in the next run.
 * @returns the renamed data, the mistyped keys as findings, and a function from a path of the data to the path in the file
 */
function correctMistypedKeys(data: unknown, drivers: readonly DriverSchema[]) {
  const renamed = copyData(data);
  const typos: Finding[] = [];
  const typed = new Map<string, string | number>();
  for (let round = 0; round < maxRounds; round++) {
    const before = typos.length;
    for (const typo of checkSchema(renamed, drivers)) {
      const { path, suggestion } = typo;
      if (suggestion === undefined || !renameKey(renamed, path, suggestion)) continue;
      typos.push(typo);
      typed.set(pointerOf([...path.slice(0, -1), suggestion]), path.at(-1) ?? '');
    }
    if (typos.length === before) break;
  }
  const writtenPath = (path: ConfigPath): ConfigPath =>
    path.map((part, index) => typed.get(pointerOf(path.slice(0, index + 1))) ?? part);
  return { data: renamed, typos, writtenPath };
}

function checkSchema(data: unknown, drivers: readonly DriverSchema[]): Finding[] {
  const check = (schema: object, value: unknown, base: ConfigPath): Finding[] => {
    if (validatorOf(schema)(value)) return [];
    return everyMistake(schema, value).flatMap((error) => schemaFinding(error, base) ?? []);
  };
  const findings = check(configSchema, data, []);
  for (const [index, worker] of workersOf(data).entries()) {
    const [driver, ...others] = namedDrivers(worker['reset'], drivers);
    if (driver === undefined || others.length > 0) continue;
    findings.push(...check(driverSchemaOf(driver), worker['reset'], ['workers', index, 'reset']));
  }
  return findings;
}

function workersOf(data: unknown): Group[] {
  return asList(asGroup(data)['workers']).map(asGroup);
}

interface GroupTrial {
  readonly findings: readonly Finding[];
  readonly verdict?: GroupVerdicts[number] | undefined;
  readonly isProcessUnknown?: boolean;
}

/** Creates the driver of each group to find mistakes that only the driver knows. Skips a group with other findings. */
function tryDrivers(
  data: unknown,
  found: readonly Finding[],
  { drivers, defaults, tryDriver }: ParseConfigOptions,
): GroupTrial[] {
  const { run } = asGroup(data);
  return workersOf(data).map((worker, index) => {
    const [driver] = namedDrivers(worker['reset'], drivers);
    const isWrong = found.some(({ path }) => path[0] === 'workers' && path[1] === index);
    if (driver === undefined || isWrong || tryDriver === undefined) return { findings: [] };
    const process = worker['process'] as ProcessFile | undefined;
    const place: TrialPlace = {
      runDirectory: typeof run === 'string' ? run : defaults.run,
      ...given({ process: process && buildProcess(process) }),
    };
    const trial = tryDriver(driver.name, asGroup(worker['reset']), place);
    const path = ['workers', index];
    if (trial.kind === 'made') {
      const findings = trial.canRestart ? [] : [...restartRules(worker, driver.name, path)];
      return { findings, verdict: trial.verdictClass, isProcessUnknown: trial.hasIdentity === false };
    }
    const { code, text } = trial;
    return { findings: [{ path: [...path, 'reset'], at: 'key', text, code }] };
  });
}

/** Reports settings that need a restart: otherwise an operator notices the missing ability only when it is needed. */
function* restartRules(worker: Group, driver: string, path: ConfigPath): Generator<Finding> {
  const text = `the driver ${driver} cannot restart a worker`;
  if (asGroup(worker['when'])['restart'] !== undefined) yield at([...path, 'when', 'restart'], text);
  if (worker['onDead'] === 'restart') yield at([...path, 'onDead'], text);
}

/** @returns the JSON pointers of all set keys; a list counts as one value */
function pointersOfSetKeys(value: unknown, path: ConfigPath): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [pointerOf(path)];
  return Object.entries(value).flatMap(([key, inner]) => pointersOfSetKeys(inner, [...path, key]));
}

/** @returns the mistakes in the order of the file, without duplicates, which ajv reports with `allErrors` */
export function sortMistakes(mistakes: readonly ConfigMistake[]): ConfigMistake[] {
  const unique = new Map(mistakes.map((one) => [`${one.pointer} ${one.text}`, one]));
  return [...unique.values()].sort((a, b) => a.line - b.line || a.column - b.column);
}
