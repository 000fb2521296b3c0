// `writ status`: what this host uses, who answered for it, and what is wrong. Loads the parser and a socket.
import { judgeHealth } from '../../core/host-health.js';
import { addConfigFlag, type ConfigFlags, withConfig } from '../ask.js';
import type { CommandDefinition } from '../command.js';
import { readStatus } from '../read-status.js';
import { showStatus, statusWord } from '../show-status.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ status', 'writ status --json'],
  exitCodes: ['0  answered, whatever the state is', '1  no answer', '2  usage or configuration'],
  onSignal: 'end',
  configure: (command) => void addConfigFlag(command),
  run: async (_args, flags, context) => {
    const report = await readStatus(flags.config, context);
    const { schema: _schema, type, ...rest } = report;
    const details = { ...rest, health: judgeHealth(report).level };
    return withConfig(
      { type, outcome: statusWord(report), exitCode: 0, details, ...showStatus(report) },
      flags,
    );
  },
};
