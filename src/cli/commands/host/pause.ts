// `writ pause`: nothing is activated until an end, or until `writ resume`; what is active stays and is watched.

import { WritError } from '../../../core/errors.js';
import type { PauseResult } from '../../../core/protocol/control-protocol.js';
import type { CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, reasonFlag, timeFlag } from '../../console/flag-values.js';
import { agentDoors } from '../../host/agent-doors.js';
import { addConfigFlag, ask, type ConfigFlags, isNotRunning, whoAsks, withConfig } from '../../host/ask.js';
import { minuteTime } from '../../show/show-text.js';

interface PauseFlags extends ConfigFlags {
  /** Milliseconds. */
  readonly for?: number;
  /** Epoch milliseconds. */
  readonly until?: number;
  readonly reason: string;
}

export const command: CommandDefinition<PauseFlags> = {
  examples: [
    'writ pause --for 2h --reason "change freeze, ticket 4711"',
    'writ pause --until 2026-12-27T08:00Z --reason "holidays"',
  ],
  exitCodes: [
    '0  paused',
    '1  failed',
    '2  usage or configuration, also an end that is over or more than a year away',
    '6  busy',
  ],
  onSignal: 'end',
  configure: (command) => {
    addConfigFlag(command)
      .option('--for <duration>', 'how long, as 2h; without an end: until `writ resume`', durationFlag)
      .option('--until <time>', 'when it ends, as 2026-12-27T08:00Z', timeFlag)
      .requiredOption('--reason <text>', 'why, for status and for who finds it', reasonFlag);
  },
  run: async (_args, flags, context) => {
    const { reason, until, for: forMs } = flags;
    if (until !== undefined && forMs !== undefined)
      throw new WritError('USAGE', '--for and --until both say when it ends: only one can hold');
    const untilMs = forMs === undefined ? until : context.clock.nowMs() + forMs;
    const result = await pause(flags.config, context, {
      reason,
      ...(untilMs === undefined ? {} : { untilMs }),
    });
    const end =
      result.pause.untilMs === undefined
        ? 'until `writ resume`'
        : `until ${minuteTime(result.pause.untilMs)}`;
    const answer = {
      type: result.type,
      outcome: 'paused',
      exitCode: 0,
      details: { pause: result.pause },
      lines: [
        `PAUSED    ${end}`,
        '  What is active stays, and its workers are told of it; new releases wait.',
      ],
      next: 'writ resume',
    };
    return withConfig(answer, flags);
  },
};

async function pause(
  configPath: string,
  context: CommandContext,
  wanted: { readonly reason: string; readonly untilMs?: number },
): Promise<PauseResult> {
  const by = whoAsks(context.env);
  try {
    const answer = await ask({ request: { type: 'pause', by, ...wanted }, configPath, context });
    if (answer.type === 'pause.result') return answer;
    throw new WritError('MESSAGE_MALFORMED', `the agent answered ${answer.type} to pause`);
  } catch (error) {
    if (!isNotRunning(error)) throw error;
    const { version, signal } = context;
    return agentDoors.pauseAlone({ configPath, by, version, signal, ...wanted });
  }
}
