// `writ reload`: makes the running agent read its configuration again and pull, and prints both results.

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
    // A refused configuration is an error and has no result.
    return withConfig(isInterruptedWait(result) ? answer : addConfigurationInUse(answer), flags);
  },
};

/** Adds that the configuration is in use, because the result of the cycle reports only the pull. */
function addConfigurationInUse({ lines, details, ...answer }: Answer): Answer {
  const [head = '', ...more] = lines;
  const answerLines = [head, '  The configuration was read again and is in use.', ...more];
  return { ...answer, details: { ...details, configuration: 'in-use' }, lines: answerLines };
}
