// `writ reload`: the running agent reads its configuration again and pulls; says whether it is in use, and what came of it.

import type { Answer, CommandDefinition } from '../../console/command.js';
import { type ConfigFlags, callerName, configFlag, withConfig } from '../../host/agent-requests.js';
import { cycleAnswer, isInterruptedWait, requestCycle } from '../../host/cycle-command.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ reload', 'writ reload --json'],
  exitCodes: [
    '0  the new configuration is in use; activated, or unchanged',
    '1  failed, or no agent runs',
    '2  a mistake in the configuration, or a key that needs a restart: the old configuration stays in use',
    '3  in use; the newest policy is rejected',
    '4  in use; degraded: a worker was not notified',
    '5  in use; rolled back',
    '6  in use; blocked',
    '8  in use; deferred',
    '130  interrupted; the agent continues what it had begun',
  ],
  onSignal: 'drain',
  flags: configFlag,
  acts: () => true,
  run: async (_args, flags, context) => {
    const request = { type: 'reload', by: callerName(context.env) } as const;
    const result = await requestCycle({ request, flags, context });
    const answer = cycleAnswer(result);
    // A configuration that is not taken is an error, and no result.
    return withConfig(isInterruptedWait(result) ? answer : inUse(answer), flags);
  },
};

/** The rest is about the pull: whoever changed a file wants to know that it was read. */
function inUse({ lines, details, ...answer }: Answer): Answer {
  const [head = '', ...more] = lines;
  const said = [head, '  The configuration was read again and is in use.', ...more];
  return { ...answer, details: { ...details, configuration: 'in-use' }, lines: said };
}
