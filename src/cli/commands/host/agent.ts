// `writ agent`: the long-running process on every host. Logs go to stderr, as lines on a terminal; the only result is the exit code.
import { Option } from '#commander';
import type { LogLevel } from '../../../platform/telemetry/log.js';
import type { CommandDefinition } from '../../console/command.js';
import type { Flag, FlagValues } from '../../console/flags.js';
import { logFlags, logForm, logLevel } from '../../console/log-flags.js';
import { configFlag } from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';

const logLevels: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];
const logLevelFlag: Flag<LogLevel | undefined> = new Option(
  '--log-level <level>',
  'least important lines to log; by default info, with -q warn, with -v debug',
);

const flags = { ...configFlag, ...logFlags, logLevel: logLevelFlag.choices(logLevels) };

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: ['writ agent --config /etc/writ/agent.yaml', 'writ agent --log-level debug'],
  exitCodes: [
    '0  ended by SIGTERM or SIGINT',
    '1  failed',
    '2  usage or configuration; every mistake is listed',
    '7  another agent uses this state directory',
  ],
  onSignal: 'drain',
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const { at, version, signal } = context;
    const { runAgent } = await agentModules.agent();
    const log = { logLevel: flags.logLevel ?? logLevel(flags), logForm: logForm(flags, context) };
    const exitCode = await runAgent({ configPath: at(flags.config), ...log, version, signal });
    return { outcome: 'stopped', exitCode, details: {}, lines: [] };
  },
};
