// `writ resume`: ends a pause, holds and a block, so that the next poll activates again.

import { WritError } from '../../../core/errors.js';
import type { ResumeResult } from '../../../core/protocol/control-protocol.js';
import type { CommandContext, CommandDefinition } from '../../console/command.js';
import { agentDoors } from '../../host/agent-doors.js';
import { addConfigFlag, ask, type ConfigFlags, isNotRunning, whoAsks, withConfig } from '../../host/ask.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ resume', 'writ resume && writ pull'],
  exitCodes: ['0  ended, or nothing was in the way', '1  failed', '2  usage or configuration', '6  busy'],
  onSignal: 'end',
  configure: (command) => void addConfigFlag(command),
  run: async (_args, flags, context) => {
    const { type, ended } = await resume(flags.config, context);
    const nothing = ended.length === 0;
    const answer = {
      type,
      outcome: nothing ? 'unchanged' : 'resumed',
      exitCode: 0,
      details: { ended },
      lines: nothing
        ? ['UNCHANGED nothing was paused, held or blocked']
        : ['RESUMED', ...ended.map((one) => `  ${one.kind} has ended: ${one.what}`)],
      ...(nothing ? {} : { next: 'writ pull' }),
    };
    return withConfig(answer, flags);
  },
};

async function resume(configPath: string, context: CommandContext): Promise<ResumeResult> {
  const by = whoAsks(context.env);
  try {
    const answer = await ask({ request: { type: 'resume', by }, configPath, context });
    if (answer.type === 'resume.result') return answer;
    throw new WritError('MESSAGE_MALFORMED', `the agent answered ${answer.type} to resume`);
  } catch (error) {
    if (!isNotRunning(error)) throw error;
    const { version, signal } = context;
    return agentDoors.resumeAlone({ configPath, by, version, signal });
  }
}
