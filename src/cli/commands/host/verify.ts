// `writ verify`: compares the policy on disk with its signed manifest. With --repair damaged generations are completed.

import { given } from '../../../core/given.js';
import type { VerifyResult } from '../../../core/status/verify-report.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type CommonFlags, type FlagValues, toggle } from '../../console/flags.js';
import {
  callerName,
  configFlag,
  expectResponse,
  isInterruptedRequest,
  requestOrRun,
  withConfig,
} from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';
import { stepPrinter } from '../../show/show-steps.js';
import { showVerified, verifiedCode } from '../../show/show-verified.js';

const flags = {
  ...configFlag,
  repair: toggle(
    '--repair',
    'repair damaged files: from kept files, else by a download, else restore an older generation',
  ),
};
type VerifyFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<VerifyFlags> = {
  examples: ['writ verify', 'writ verify --repair --json'],
  exitCodes: [
    '0  intact; with --repair also when the repair succeeded',
    '1  damage was found and remains, the active policy is untrusted, or the check failed',
    '2  usage or configuration',
    '7  another process is busy',
    '130  interrupted; the agent continues',
  ],
  onSignal: 'drain',
  flags,
  acts: (_args, flags) => flags.repair === true,
  run: async (_args, flags, context) => withConfig(await answer(flags, context), flags),
};

async function answer(flags: VerifyFlags & CommonFlags, context: CommandContext): Promise<Answer> {
  try {
    const result = await verify(flags, context);
    const { type: _type, outcome, exitCode, schema: _schema, ...details } = result;
    const coded = { ...given({ code: verifiedCode(result) }), ...details };
    return { outcome, exitCode, details: coded, ...showVerified(result) };
  } catch (error) {
    if (!isInterruptedRequest(error)) throw error;
    return {
      outcome: 'interrupted',
      exitCode: 130,
      details: { code: 'INTERRUPTED' },
      lines: ['INTERRUPTED  the result is unknown; a running repair continues in the agent.'],
      next: 'writ status',
    };
  }
}

function verify(flags: VerifyFlags & CommonFlags, context: CommandContext): Promise<VerifyResult> {
  const repair = flags.repair === true;
  const onEvent = stepPrinter(context.reporter, flags);
  const request = { type: 'verify', repair, by: callerName(context.env) } as const;
  return requestOrRun<VerifyResult>(
    { request, flags, context, onMessage: onEvent },
    expectResponse('verify.result'),
    async (options) => (await agentModules.withoutAgent()).verifyStandalone({ ...options, repair, onEvent }),
  );
}
