// `writ rollback`: moves to the previous or a named generation. The release that it leaves is held until a newer serial.

import { given } from '../../../core/given.js';
import type { CommandDefinition } from '../../console/command.js';
import { generationOf, reasonFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { callerName, configFlag, withConfig } from '../../host/agent-requests.js';
import { cycleAnswer, requestCycle } from '../../host/cycle-command.js';
import { agentModules } from '../../host/lazy-agent-modules.js';

const flags = {
  ...configFlag,
  reason: optional('--reason <text>', 'why, for the history and for status', reasonFlag),
  force: toggle('--force', 'allow a release that its publisher has withdrawn'),
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: ['writ rollback', 'writ rollback 17 --reason "view eu is broken"'],
  exitCodes: [
    '0  the older generation is active',
    '1  failed; the running policy stays',
    '2  usage: there is no such generation',
    '4  degraded: active, but a worker was not notified; or activated, but unconfirmed',
    '5  a worker refused the older generation; the previous one is active again',
    '6  blocked',
    '7  another process is busy, or another generation became active meanwhile',
    '130  interrupted; the agent continues what it had begun',
  ],
  onSignal: 'drain',
  args: [
    ['[generation]', 'number of a kept generation; default: the newest earlier one that was not refused'],
  ],
  flags,
  acts: () => true,
  run: async ([text], flags, context) => {
    const wanted = given({ generation: generationOf(text), reason: flags.reason, force: flags.force });
    const request = { type: 'rollback', by: callerName(context.env), ...wanted } as const;
    const result = await requestCycle({ request, flags, context }, async (options) =>
      (await agentModules.withoutAgent()).rollbackStandalone({ ...options, ...wanted }),
    );
    return withConfig(cycleAnswer(result), flags);
  },
};
