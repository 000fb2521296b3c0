// `writ resume`: ends a pause, holds and a block, so that the next poll activates again; and accepts a state directory that a person
// emptied on purpose.

import { WritError } from '../../../core/errors.js';
import type { ResumeResult } from '../../../core/protocol/control-protocol.js';
import type { CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, toggle } from '../../console/flags.js';
import { agentDoors } from '../../host/agent-doors.js';
import {
  aloneOptions,
  ask,
  askOrAct,
  configFlag,
  isNotRunning,
  only,
  serviceOf,
  whoAsks,
  withConfig,
} from '../../host/ask.js';

const flags = {
  ...configFlag,
  newState: toggle(
    '--new-state',
    'accept a state directory that was emptied on purpose; stop the agent before',
  ),
};
type ResumeFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<ResumeFlags> = {
  examples: [
    'writ resume',
    'writ resume && writ pull',
    'systemctl stop writ-agent && writ resume --new-state && systemctl start writ-agent',
  ],
  exitCodes: [
    '0  ended, or nothing to end',
    '1  failed',
    '2  usage or configuration',
    '6  the state directory vanished, and was not accepted',
    '7  busy; with --new-state also: an agent runs',
  ],
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const { ended } =
      flags.newState === true ? await acceptNewState(flags, context) : await resume(flags, context);
    const nothing = ended.length === 0;
    const answer = {
      outcome: nothing ? 'unchanged' : 'resumed',
      details: { ended },
      lines: nothing ? ['UNCHANGED nothing is paused, held or blocked'] : ['RESUMED', ...ended.map(lineOf)],
      next: nothing ? undefined : 'writ pull',
    };
    return withConfig(answer, flags);
  },
};

function lineOf({ kind, what }: ResumeResult['ended'][number]): string {
  return kind === 'new-state'
    ? `  accepted as a new state directory: ${what}`
    : `  ${kind} has ended: ${what}`;
}

async function resume(flags: ResumeFlags, context: CommandContext): Promise<ResumeResult> {
  const request = { type: 'resume', by: whoAsks(context.env) } as const;
  return askOrAct({ request, flags, context }, only('resume.result'), async (options) =>
    (await agentDoors.withoutAgent()).resumeAlone(options),
  );
}

/** An agent has in memory what was in the directory before, and its lock is in a file that is gone. */
async function acceptNewState(flags: ResumeFlags, context: CommandContext): Promise<ResumeResult> {
  try {
    await ask({ request: { type: 'status' }, flags, context });
  } catch (error) {
    if (!isNotRunning(error)) throw error;
    const options = { ...aloneOptions(flags, context), newState: true } as const;
    return (await agentDoors.withoutAgent()).resumeAlone(options);
  }
  const hint = `Stop the agent first, run this command again, then start it: \`${serviceOf(context).start}\`.`;
  throw new WritError('LOCK_HELD', 'an agent runs on this host', { facts: { what: 'agent' }, hint });
}
