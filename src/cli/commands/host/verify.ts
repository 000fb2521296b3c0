// `writ verify`: is what lies on this host what was signed? With --repair what is not is made anew.

import type { CycleEventLine } from '../../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../../core/errors.js';
import type { ControlAnswer } from '../../../core/protocol/control-protocol.js';
import type { VerifyResult } from '../../../core/status/verify-report.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { agentDoors } from '../../host/agent-doors.js';
import { addConfigFlag, ask, type ConfigFlags, isNotRunning, whoAsks, withConfig } from '../../host/ask.js';
import { stepPrinter } from '../../show/show-steps.js';
import { showVerified } from '../../show/show-verified.js';

interface VerifyFlags extends ConfigFlags {
  readonly repair?: boolean;
  readonly verbose?: boolean;
}

export const command: CommandDefinition<VerifyFlags> = {
  examples: ['writ verify', 'writ verify --repair --json'],
  exitCodes: [
    '0  whole; with --repair also when it is whole in the end',
    '1  damage was found, and is there still; or it could not be looked at',
    '2  usage or configuration',
    '6  another process is busy',
    '130  interrupted; the agent goes on',
  ],
  onSignal: 'drain',
  configure: (command) => {
    addConfigFlag(command).option(
      '--repair',
      'make what is damaged anew: from what is kept, else by a download, else go back to an older generation',
    );
  },
  run: async (_args, flags, context) => withConfig(await answer(flags, context), flags),
};

async function answer(flags: VerifyFlags, context: CommandContext): Promise<Answer> {
  try {
    const result = await verify(flags, context);
    const { type, outcome, exitCode, schema: _schema, ...details } = result;
    return { type, outcome, exitCode, details, ...showVerified(result) };
  } catch (error) {
    if (!isWritError(error) || error.code !== 'INTERRUPTED') throw error;
    return {
      type: 'verify.result',
      outcome: 'interrupted',
      exitCode: 130,
      details: { code: 'INTERRUPTED' },
      lines: ['INTERRUPTED  what was found is not known; a repair under way goes on in the agent.'],
      next: 'writ status',
    };
  }
}

async function verify(flags: VerifyFlags, context: CommandContext): Promise<VerifyResult> {
  const { config: configPath, verbose } = flags;
  const { reporter, signal, version, env } = context;
  const repair = flags.repair === true;
  const by = whoAsks(env);
  const onEvent = stepPrinter({ reporter, detail: verbose === true ? 'all' : 'news' });
  const onMessage = (message: ControlAnswer): void => {
    if (isEvent(message)) onEvent(message);
  };
  try {
    const last = await ask({ request: { type: 'verify', repair, by }, configPath, context, onMessage });
    if (last.type === 'verify.result') return last;
    throw new WritError('MESSAGE_MALFORMED', `the agent answered ${last.type} to verify`);
  } catch (error) {
    if (!isNotRunning(error)) throw error;
    return agentDoors.verifyAlone({ configPath, repair, by, version, signal, onEvent });
  }
}

function isEvent(message: ControlAnswer): message is CycleEventLine {
  return message.type === 'cycle.started' || message.type.startsWith('step.');
}
