// `writ resume`: ends a pause, holds and a block, so that the next poll activates again.

import type { CommandDefinition } from '../../console/command.js';
import { agentDoors } from '../../host/agent-doors.js';
import { askOrAct, type ConfigFlags, configFlag, only, whoAsks, withConfig } from '../../host/ask.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ resume', 'writ resume && writ pull'],
  exitCodes: ['0  ended, or nothing to end', '1  failed', '2  usage or configuration', '7  busy'],
  flags: configFlag,
  acts: () => true,
  run: async (_args, flags, context) => {
    const request = { type: 'resume', by: whoAsks(context.env) } as const;
    const { ended } = await askOrAct({ request, flags, context }, only('resume.result'), async (options) =>
      (await agentDoors.withoutAgent()).resumeAlone(options),
    );
    const nothing = ended.length === 0;
    const answer = {
      outcome: nothing ? 'unchanged' : 'resumed',
      details: { ended },
      lines: nothing
        ? ['UNCHANGED nothing is paused, held or blocked']
        : ['RESUMED', ...ended.map((one) => `  ${one.kind} has ended: ${one.what}`)],
      next: nothing ? undefined : 'writ pull',
    };
    return withConfig(answer, flags);
  },
};
