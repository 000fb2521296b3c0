// `writ resume`: ends a pause, holds and a block, so that the next poll activates again; and accepts a state directory that a person
// emptied on purpose.

import { WritError } from '../../../core/errors.js';
import type { ResumeResult } from '../../../core/protocol/control-protocol.js';
import type { CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, toggle } from '../../console/flags.js';
import {
  agentService,
  callerName,
  configFlag,
  expectResponse,
  isAgentNotRunning,
  requestOrRun,
  sendRequest,
  standaloneOptions,
  withConfig,
} from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';

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
  const request = { type: 'resume', by: callerName(context.env) } as const;
  return requestOrRun({ request, flags, context }, expectResponse('resume.result'), async (options) =>
    (await agentModules.withoutAgent()).resumeStandalone(options),
  );
}

/** Refuses while an agent runs, because it has the former state in memory and its lock is in a deleted file. */
async function acceptNewState(flags: ResumeFlags, context: CommandContext): Promise<ResumeResult> {
  try {
    await sendRequest({ request: { type: 'status' }, flags, context });
  } catch (error) {
    if (!isAgentNotRunning(error)) throw error;
    const options = { ...standaloneOptions(flags, context), newState: true } as const;
    return (await agentModules.withoutAgent()).resumeStandalone(options);
  }
  const hint = `Stop the agent first, run this command again, then start it: \`${agentService(context).start}\`.`;
  throw new WritError('LOCK_HELD', 'an agent runs on this host', { facts: { what: 'agent' }, hint });
}
