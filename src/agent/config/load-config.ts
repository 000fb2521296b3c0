// The agent's configuration from disk: reads the file, adds what only this host knows (its id, the drivers that
// are built in, the cron parser), and turns mistakes into one error. Never changes anything.
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { validateDetailed } from 'node-cron';
import type { AgentConfig } from '../../core/config/config.js';
import { type ConfigMistake, configError } from '../../core/config/config-errors.js';
import { defaultPlaces } from '../../core/config/config-values.js';
import { type DriverTrial, parseConfig } from '../../core/config/parse-config.js';
import { isSystemError, isWritError } from '../../core/errors.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { silentLog } from '../../platform/telemetry/log.js';
import { systemClock } from '../../platform/time/clock.js';
import { driverKinds } from '../../workers/registry.js';
import { readConfigFile } from './config-file.js';

export interface LoadedConfig {
  readonly config: AgentConfig;
  readonly warnings: readonly ConfigMistake[];
  /** Pointers of the keys that the file sets, as `/poll/every`; the others have their defaults. */
  readonly given: readonly string[];
}

/**
 * @param path of the configuration file
 * @throws WritError CONFIG_UNREADABLE; CONFIG_SYNTAX, CONFIG_INVALID, SOCKET_PATH_TOO_LONG with every mistake in
 * `facts.mistakes`
 */
export function loadConfig(path: string): LoadedConfig {
  const parsed = parseConfig(readConfigFile(path), {
    drivers: driverKinds,
    validateCron,
    tryDriver,
    defaults: {
      ...defaultPlaces,
      hostId: hostId('/etc/machine-id'),
      sandbox: process.getuid?.() === 0 ? 'required' : 'auto',
    },
  });
  if (!parsed.ok) throw configError(path, parsed.mistakes);
  const { config, warnings, given } = parsed;
  return { config, warnings, given };
}

/** By making it as an agent would: it opens and writes nothing before it is opened. */
function tryDriver(
  name: string,
  reset: Readonly<Record<string, unknown>>,
  runDirectory: string,
): DriverTrial {
  const kind = driverKinds.find((one) => one.name === name);
  const inert = {
    group: name,
    runDirectory,
    log: silentLog(),
    clock: systemClock,
    durable: createDurableFs(),
  };
  try {
    const driver = kind?.create(reset, inert);
    return { kind: 'made', canRestart: driver?.restart !== undefined };
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

/** @param machineIdPath as /etc/machine-id. @returns its content, or the host's name where it has none */
export function hostId(machineIdPath: string): string {
  try {
    const id = readFileSync(machineIdPath, 'utf8').trim();
    if (/^[0-9a-f]{32}$/.test(id)) return id;
  } catch (error) {
    if (!isSystemError(error)) throw error;
  }
  return hostname();
}
