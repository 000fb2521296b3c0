// `writ pull`: makes the newest policy active now and says what really happened.
import { agentDoors } from '../agent-doors.js';
import { addConfigFlag, type ConfigFlags, withConfig } from '../ask.js';
import type { CommandDefinition } from '../command.js';
import { askForCycle, cycleAnswer } from '../cycle-command.js';
import { numberFlag } from '../flag-values.js';

interface PullFlags extends ConfigFlags {
  readonly force?: boolean;
  readonly exitUnchanged?: number;
  readonly verbose?: boolean;
}

export const command: CommandDefinition<PullFlags> = {
  examples: ['writ pull', 'writ pull --force --json'],
  exitCodes: [
    '0  activated, or unchanged',
    '1  failed; the running policy stays, try again',
    '2  usage or configuration',
    '3  rejected; the old policy stays',
    '4  degraded: active, but a worker was not told',
    '5  rolled back',
    '6  blocked, or another process is busy',
    '8  deferred',
    '130  interrupted; the agent goes on',
  ],
  onSignal: 'drain',
  configure: (command) => {
    addConfigFlag(command)
      .option('--force', 'fetch and verify everything again; ignores holds and remembered refusals')
      .option('--exit-unchanged <code>', 'exit code when nothing changed', numberFlag(0, 255));
  },
  run: async (_args, flags, context) => {
    const force = flags.force === true;
    const result = await askForCycle({
      configPath: flags.config,
      detail: flags.verbose === true ? 'all' : 'news',
      context,
      request: (by) => ({ type: 'pull', force, by }),
      alone: (options) => agentDoors.pullAlone({ ...options, force }),
    });
    const answer = withConfig(cycleAnswer('pull.result', result), flags);
    const exitCode = answer.outcome === 'unchanged' ? flags.exitUnchanged : undefined;
    return exitCode === undefined ? answer : { ...answer, exitCode };
  },
};
