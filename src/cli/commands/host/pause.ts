// `writ pause`: stops activations until a time or `writ resume`. The active policy stays, and is still observed in its bake time.

import { WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import type { CommandDefinition } from '../../console/command.js';
import { durationFlag, reasonFlag, timeFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, required } from '../../console/flags.js';
import {
  callerName,
  configFlag,
  expectResponse,
  requestOrRun,
  withConfig,
} from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';
import { minuteTime } from '../../show/show-text.js';

const flags = {
  ...configFlag,
  for: optional('--for <duration>', 'how long, for example 2h; default: until `writ resume`', durationFlag),
  until: optional('--until <time>', 'when it ends, for example 2026-12-27T08:00Z', timeFlag),
  reason: required('--reason <text>', 'why; shown in status', reasonFlag),
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: [
    'writ pause --for 2h --reason "change freeze, ticket 4711"',
    'writ pause --until 2026-12-27T08:00Z --reason "holidays"',
  ],
  exitCodes: [
    '0  paused',
    '1  failed',
    '2  usage or configuration, also an end in the past or more than a year away',
    '7  busy',
  ],
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const { reason, until, for: forMs } = flags;
    if (until !== undefined && forMs !== undefined)
      throw new WritError('USAGE', '--for and --until both set the end: give one of them');
    const untilMs = forMs === undefined ? until : context.clock.nowMs() + forMs;
    const wanted = { reason, ...given({ untilMs }) };
    const request = { type: 'pause', by: callerName(context.env), ...wanted } as const;
    const { pause } = await requestOrRun(
      { request, flags, context },
      expectResponse('pause.result'),
      async (options) => (await agentModules.withoutAgent()).pauseStandalone({ ...options, ...wanted }),
    );
    const end = pause.untilMs === undefined ? 'until `writ resume`' : `until ${minuteTime(pause.untilMs)}`;
    const answer = {
      outcome: 'paused',
      details: { pause },
      lines: [
        `PAUSED    ${end}`,
        '  The active policy stays, and workers that start are notified; new releases wait.',
      ],
      undo: 'writ resume',
    };
    return withConfig(answer, flags);
  },
};
