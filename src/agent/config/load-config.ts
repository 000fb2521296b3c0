// Loads the configuration of the agent: reads the file, parses it with the facts of this host (its id, the built-in drivers, the
// cron parser, its files), and turns all mistakes into one error. Changes nothing.
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { validateDetailed } from '#node-cron';
import type { AgentConfig } from '../../core/config/config.js';
import { type ConfigMistake, configError, mistakeLine } from '../../core/config/config-errors.js';
import { defaultPlaces } from '../../core/config/config-values.js';
import {
  type DriverTrial,
  type ParsedConfig,
  parseConfig,
  sortMistakes,
  type TrialPlace,
} from '../../core/config/parse-config.js';
import type { HostFactSource } from '../../core/config/tolerated-rules.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import { silentLog } from '../../platform/telemetry/silent-log.js';
import { systemClock } from '../../platform/time/clock.js';
import { driverKinds } from '../../workers/registry.js';
import { readConfigFile, requireOwnConfig } from './config-file.js';
import { createHostFactSource } from './host-facts.js';

export interface LoadedConfig {
  readonly config: AgentConfig;
  /** SHA-256 of the text of the file with its comments, hex. */
  readonly digest: string;
  /** Mistakes that a start accepts and `writ config check` refuses. */
  readonly tolerated: readonly ConfigMistake[];
  readonly warnings: readonly ConfigMistake[];
  /** Pointers of the keys that the file sets, as `/poll/every`; the others have their defaults. */
  readonly given: readonly string[];
}

/** With `hostFacts` the names of programs, files and groups are checked, as a start, `config check` and `doctor` do. */
export interface LoadOptions {
  readonly hostFacts?: HostFactSource;
}

/**
 * Reads, parses and validates the configuration file. Writes nothing and logs nothing.
 * @param path of the configuration file
 * @param options with `hostFacts` absent, no program, file or group of the configuration is checked on this host
 * @returns the configuration with all defaults. `tolerated` and `warnings` are empty lists if there are none; neither makes it
 *   fail
 * @throws WritError CONFIG_UNREADABLE if the file cannot be read
 * @throws WritError with every mistake in `facts.mistakes`: the common code of the mistakes, CONFIG_SYNTAX, CONFIG_INVALID or
 *   SOCKET_PATH_TOO_LONG, or CONFIG_INVALID if their codes differ
 */
export function loadConfig(path: string, options: LoadOptions = {}): LoadedConfig {
  const text = readConfigFile(path);
  const parsed = parse(text, options);
  if (!parsed.ok) throw configError(path, parsed.mistakes);
  const { ok: _, ...loaded } = parsed;
  return { ...loaded, digest: textDigest(text) };
}

/** As loadConfig, and what a start only warns of is a mistake here. @throws WritError as loadConfig */
export function checkConfig(
  path: string,
  options: LoadOptions = { hostFacts: createHostFactSource() },
): LoadedConfig {
  const parsed = parse(readConfigFile(path), options);
  const refused = [...(parsed.ok ? [] : parsed.mistakes), ...parsed.tolerated];
  if (refused.length > 0) throw configError(path, sortMistakes(refused));
  return loadConfig(path, options);
}

/** As loadConfig, for a process that acts by the configuration. @throws WritError PATH_UNSAFE, and as loadConfig */
export function loadToAct(path: string): AgentConfig {
  requireOwnConfig(path);
  return loadConfig(path).config;
}

/** As loadConfig, at a start and a reload. Logs warnings and the mistakes that `writ config check` would refuse. @throws WritError as loadToAct */
export function loadForAgent(
  path: string,
  log: Logger,
  hostFacts: HostFactSource = createHostFactSource(),
): Pick<LoadedConfig, 'config' | 'digest'> {
  requireOwnConfig(path);
  const { config, digest, tolerated, warnings } = loadConfig(path, { hostFacts });
  const doubts = [...tolerated, ...warnings].map(mistakeLine);
  log.info({ path, warnings }, 'configuration read');
  if (doubts.length > 0) log.warn({ path, doubts }, 'configuration: see writ config check');
  return { config, digest };
}

/** @param digest of the text that the agent has read. @returns CONFIG_CHANGED if the file has another text now */
export function changeOfFile(path: string, digest: string): WritError | undefined {
  const now = digestNow(path);
  if (now === digest) return undefined;
  const what = isWritError(now)
    ? `the agent continues, but ${now.message}`
    : `${path} is not what the agent has read`;
  return new WritError('CONFIG_CHANGED', what, { facts: { path } });
}

function digestNow(path: string): string | WritError {
  try {
    return textDigest(readConfigFile(path));
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

function textDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function parse(text: string, { hostFacts }: LoadOptions): ParsedConfig {
  return parseConfig(text, {
    ...given({ hostFacts }),
    drivers: driverKinds,
    validateCron,
    tryDriver,
    defaults: {
      ...defaultPlaces,
      hostId: hostIdOf(hostname()),
      sandbox: process.getuid?.() === 0 ? 'required' : 'auto',
    },
  });
}

/** Creates the driver as an agent would. A driver opens and writes nothing before its `open`. */
function tryDriver(name: string, reset: Readonly<Record<string, unknown>>, place: TrialPlace): DriverTrial {
  const kind = driverKinds.find((one) => one.name === name);
  const inert = {
    group: name,
    ...place,
    log: silentLog(),
    clock: systemClock,
    durable: createDurableFs(),
  };
  try {
    const driver = kind?.create(reset, inert);
    return {
      kind: 'made',
      canRestart: driver?.restart !== undefined,
      verdictClass: driver?.verdictClass,
      hasIdentity: driver?.identity !== undefined,
    };
  } catch (error) {
    if (!isWritError(error)) throw error;
    if (error.code !== 'CONFIG_INVALID' && error.code !== 'SOCKET_PATH_TOO_LONG') throw error;
    return { kind: 'refused', code: error.code, text: error.message.replace(/^reset: /, '') };
  }
}

/** @returns what is wrong with the expression or the zone, or undefined */
export function validateCron(expression: string, timeZone: string | undefined): string | undefined {
  if (timeZone !== undefined && !isTimeZone(timeZone)) return `there is no time zone ${timeZone}`;
  const { errors } = validateDetailed(expression);
  return errors.length === 0 ? undefined : errors.map((error) => error.message).join('; ');
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** @param name host name of the kernel. @returns a valid `host.id`; never the machine id, which is confidential */
export function hostIdOf(name: string): string {
  const id = name.replace(/[^A-Za-z0-9._:-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return id === '' ? 'host' : id.slice(0, 128);
}
