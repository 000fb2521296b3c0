// Where the agent of a configuration file can be found. Reads three keys and judges nothing else, so that
// `writ status` starts fast and still answers when the file has a mistake further down.
import type { AgentConfig } from '../../core/config/config.js';
import { configError } from '../../core/config/config-errors.js';
import { readConfigText } from '../../core/config/config-text.js';
import { defaultPlaces } from '../../core/config/config-values.js';
import { readConfigFile } from './config-file.js';

export type AgentPlaces = Pick<AgentConfig, 'state' | 'policy' | 'run' | 'socket'>;

/**
 * @param configPath of the configuration file
 * @throws WritError CONFIG_UNREADABLE, CONFIG_SYNTAX
 */
export function agentPlaces(configPath: string): AgentPlaces {
  const read = readConfigText(readConfigFile(configPath));
  if (!read.ok) throw configError(configPath, read.mistakes);
  const { data } = read;
  const state = pathIn(data, 'state') ?? defaultPlaces.state;
  const run = pathIn(data, 'run') ?? defaultPlaces.run;
  const policy = pathIn(data, 'policy') ?? `${state}/policy`;
  return { state, run, policy, socket: pathIn(data, 'socket') ?? `${run}/agent.sock` };
}

function pathIn(data: unknown, key: string): string | undefined {
  if (typeof data !== 'object' || data === null || !Object.hasOwn(data, key)) return undefined;
  const value = (data as Readonly<Record<string, unknown>>)[key];
  return typeof value === 'string' && value.startsWith('/') ? value : undefined;
}
