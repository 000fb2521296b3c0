// `writ refusals`: lists the refusals of this host; `forget` deletes some, so that the host tries their releases again.
import { WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import type { RefusalsResult } from '../../../core/protocol/control-protocol.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { nameFlag, serialFlag } from '../../console/flag-values.js';
import { type FlagValues, optional } from '../../console/flags.js';
import {
  callerName,
  configFlag,
  expectResponse,
  requestOrRun,
  withConfig,
} from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';
import { showForgotten, showRefusals } from '../../show/show-refusals.js';

const flags = {
  ...configFlag,
  bundle: optional('--bundle <name>', 'forget: only refusals of this bundle', nameFlag),
  serial: optional('--serial <number>', 'forget: only this release of the bundle', serialFlag),
};
type RefusalsFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<RefusalsFlags> = {
  examples: ['writ refusals', 'writ refusals forget --bundle dns-edge --serial 42'],
  exitCodes: [
    '0  listed; forgotten, or nothing to forget',
    '1  failed',
    '2  usage or configuration, or no such refusal',
    '7  busy',
  ],
  args: [['[forget]', 'forget refusals: all of them, or those that the flags select']],
  firstArguments: ['forget'],
  flags,
  acts: ([verb]) => verb === 'forget',
  run: async ([verb], flags, context) => {
    if (verb === 'forget') return withConfig(await forget(flags, context), flags);
    if (verb !== undefined)
      throw new WritError('USAGE', `${verb} is not a verb of writ refusals`, {
        hint: 'writ refusals forget',
      });
    if (flags.bundle !== undefined || flags.serial !== undefined)
      throw new WritError('USAGE', '--bundle and --serial say what to forget', {
        hint: 'writ refusals forget --bundle B --serial N',
      });
    return withConfig(await list(flags, context), flags);
  },
};

async function list(flags: RefusalsFlags, context: CommandContext): Promise<Answer> {
  const question = { request: { type: 'refusals' }, flags, context } as const;
  const result = await requestOrRun(question, expectResponse('refusals.result'), async (options) =>
    (await agentModules.fromDisk()).readOfflineRefusals(options),
  );
  const outcome = result.refusals.length === 0 ? 'empty' : 'found';
  return { outcome, details: membersOf(result), ...showRefusals(result, context.clock.nowMs()) };
}

async function forget(flags: RefusalsFlags, context: CommandContext): Promise<Answer> {
  const { bundle, serial } = flags;
  if (serial !== undefined && bundle === undefined)
    throw new WritError('USAGE', '--serial needs --bundle: each bundle counts its own serials', {
      hint: `writ refusals forget --bundle B --serial ${serial}`,
    });
  const choice = given({ bundle, serial });
  const request = { type: 'forget', by: callerName(context.env), ...choice } as const;
  const result = await requestOrRun(
    { request, flags, context },
    expectResponse('refusals.result'),
    async (options) => (await agentModules.withoutAgent()).forgetStandalone({ ...options, ...choice }),
  );
  const outcome = result.refusals.length === 0 ? 'unchanged' : 'forgotten';
  return { outcome, details: membersOf(result), ...showForgotten(result) };
}

function membersOf({ schema: _, type: _type, ...members }: RefusalsResult): Answer['details'] {
  return members;
}
