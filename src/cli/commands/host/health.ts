// `writ health`: one line and an exit code for monitoring and for the health check of a container.

import { Option } from 'commander';
import { toWritError } from '../../../core/errors.js';
import { judgeHealth } from '../../../core/status/host-health.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import type { Flag, FlagValues } from '../../console/flags.js';
import { configFlag, readStatus } from '../../host/ask.js';
import { healthLine } from '../../show/show-health.js';

const failOnFlag: Flag<'warning' | 'critical'> = new Option(
  '--fail-on <level>',
  'below this level the exit code is 0',
);

const flags = { ...configFlag, failOn: failOnFlag.choices(['warning', 'critical']).default('warning') };
type HealthFlags = FlagValues<typeof flags>;

const exitCodes = { ok: 0, warning: 1, critical: 2 } as const;

export const command: CommandDefinition<HealthFlags> = {
  examples: ['writ health', 'writ health --fail-on critical --quiet'],
  exitCodes: [
    '0  ok',
    '1  warning: stale, frozen, refused metadata or bundle, degraded, a role near its end, no agent, ...',
    '2  critical: nothing active, untrusted, blocked, damaged, older than maxStale, a group gone; or no answer',
  ],
  flags,
  run: async (_args, flags, context) => {
    const answer = await judge(flags, context);
    const isQuiet = flags.failOn === 'critical' && answer.exitCode !== exitCodes.critical;
    return isQuiet ? { ...answer, exitCode: 0 } : answer;
  },
};

async function judge(flags: HealthFlags, context: CommandContext): Promise<Answer> {
  try {
    const report = await readStatus(flags, context);
    const { level, findings } = judgeHealth(report);
    const { host, generation, agent, freshness, atMs } = report;
    return {
      outcome: level,
      exitCode: exitCodes[level],
      level,
      details: { host, agent, generation, freshness: freshness.state, atMs, findings },
      lines: [healthLine(report, { level, findings })],
    };
  } catch (error) {
    // Nobody knows how this host is: to a monitor that is as bad as it gets.
    const { code, message, hint, facts } = toWritError(error);
    return {
      outcome: 'critical',
      exitCode: exitCodes.critical,
      details: { code, message, hint, facts },
      lines: [`CRITICAL  ${message.split('\n', 1)[0]} [${code}]`],
    };
  }
}
