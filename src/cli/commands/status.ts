// `writ status`: what this host uses, who answered for it, and what is wrong. Loads the parser and a socket.
import type { StatusReport } from '../../core/control-protocol.js';
import { WritError } from '../../core/errors.js';
import { agentDoors } from '../agent-doors.js';
import { addConfigFlag, ask, type ConfigFlags, isNotRunning, withConfig } from '../ask.js';
import type { CommandContext, CommandDefinition } from '../command.js';
import { showStatus, statusWord } from '../show-status.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ status', 'writ status --json'],
  exitCodes: ['0  answered, whatever the state is', '1  no answer', '2  usage or configuration'],
  onSignal: 'end',
  configure: (command) => void addConfigFlag(command),
  run: async (_args, flags, context) => {
    const report = await readStatus(flags.config, context);
    const { schema: _schema, type, ...details } = report;
    return withConfig(
      { type, outcome: statusWord(report), exitCode: 0, details, ...showStatus(report) },
      flags,
    );
  },
};

async function readStatus(configPath: string, context: CommandContext): Promise<StatusReport> {
  try {
    const answer = await ask({ request: { type: 'status' }, configPath, context });
    if (answer.type === 'status.result') return answer;
    throw new WritError('MESSAGE_MALFORMED', `the agent answered ${answer.type} to status`);
  } catch (error) {
    if (!isNotRunning(error)) throw error;
    const { version, clock } = context;
    return agentDoors.readOfflineStatus({ configPath, version, nowMs: clock.nowMs() });
  }
}
