// `writ agent`: the long-running process on every host. Logs go to stderr; there is no answer but the exit code.
import { Option } from 'commander';
import type { LogLevel } from '../../../platform/telemetry/log.js';
import type { CommandDefinition } from '../../console/command.js';
import { agentDoors } from '../../host/agent-doors.js';
import { addConfigFlag, type ConfigFlags } from '../../host/ask.js';

interface AgentFlags extends ConfigFlags {
  readonly logLevel: LogLevel;
}

const logLevels: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];

export const command: CommandDefinition<AgentFlags> = {
  examples: ['writ agent --config /etc/writ/agent.yaml', 'writ agent --log-level debug'],
  exitCodes: [
    '0  ended by SIGTERM or SIGINT',
    '1  failed',
    '2  usage or configuration; every mistake is named',
    '6  another agent uses this state directory',
  ],
  onSignal: 'drain',
  configure: (command) => {
    const level = new Option('--log-level <level>', 'least important lines to log');
    addConfigFlag(command).addOption(level.choices(logLevels).default('info'));
  },
  run: async (_args, { config, logLevel }, { at, version, signal }) => {
    const { runAgent } = await agentDoors.agent();
    const exitCode = await runAgent({ configPath: at(config), logLevel, version, signal });
    return { outcome: 'stopped', exitCode, details: {}, lines: [] };
  },
};
