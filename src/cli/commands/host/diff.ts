// `writ diff`: show how two generations differ, or what the server would change. Nothing is activated.
import { WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import type { CommandDefinition } from '../../console/command.js';
import { generationOf } from '../../console/flag-values.js';
import { type FlagValues, toggle } from '../../console/flags.js';
import { configFlag } from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';
import { showDiff } from '../../show/show-diff.js';

const flags = {
  ...configFlag,
  server: toggle('--server', 'the active generation and the newest releases that the server lists'),
  stat: toggle('--stat', 'files and sizes only'),
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: ['writ diff', 'writ diff 17 18 --stat', 'writ diff --server'],
  exitCodes: [
    '0  the same',
    '1  different',
    '2  usage or configuration, or the comparison failed for any reason',
  ],
  onSignal: 'drain',
  failureExitCode: 2,
  args: [
    ['[A]', 'a kept generation; without any: the previous one'],
    ['[B]', 'the one to compare it with; by default the active one'],
  ],
  quiet: 'nothing',
  flags,
  run: async ([a, b], flags, { at, version, signal }) => {
    if (flags.server && a !== undefined)
      throw new WritError('USAGE', '--server compares with the active generation; give no other');
    const [from, to] = [generationOf(a), generationOf(b)];
    const { diffPolicy } = await agentModules.diff();
    const difference = await diffPolicy({
      configPath: at(flags.config),
      version,
      signal,
      against: flags.server ? 'server' : 'generations',
      hasTexts: flags.stat !== true,
      ...given({ from, to }),
    });
    const same = difference.bundles.length === 0;
    return {
      outcome: same ? 'same' : 'different',
      exitCode: same ? 0 : 1,
      level: 'ok',
      details: { ...difference },
      lines: showDiff(difference),
    };
  },
};
