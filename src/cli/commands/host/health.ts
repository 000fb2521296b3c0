// `writ health`: one line and an exit code for monitoring and for the health check of a container.

import { Option } from '#commander';
import { toWritError, type WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import { judgeHostHealth } from '../../../core/status/host-health.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type DocsPlaces, docsPage } from '../../console/docs-address.js';
import type { Flag, FlagValues } from '../../console/flags.js';
import { configFlag } from '../../host/agent-requests.js';
import { warnOfEarlyClock } from '../../host/clock-hint.js';
import { type KnownStatus, readHostStatus } from '../../host/read-status.js';
import { healthLine } from '../../show/show-health.js';
import { roughly } from '../../show/show-text.js';

const failOnFlag: Flag<'warning' | 'critical'> = new Option(
  '--fail-on <level>',
  'below this level the exit code is 0',
);

const flags = { ...configFlag, failOn: failOnFlag.choices(['warning', 'critical']).default('warning') };
type HealthFlags = FlagValues<typeof flags>;

const exitCodes = { ok: 0, warning: 1, critical: 2 } as const;
/** The exit code of Nagios for an unknown state. */
const unknownExitCode = 3;

export const command: CommandDefinition<HealthFlags> = {
  examples: ['writ health', 'writ health --fail-on critical --quiet'],
  exitCodes: [
    '0  ok',
    '1  warning: stale, frozen, refused metadata or bundle, degraded, a role near its expiry, no agent, ...',
    '2  critical: nothing active, untrusted, blocked, damaged, older than maxStale, a group is dead; or no answer',
    '3  unknown: this user has no access, or the last status of the agent is older than 3 minutes',
  ],
  quiet: 'nothing',
  flags,
  run: async (_args, flags, context) => {
    const answer = await judge(flags, context);
    warnOfEarlyClock(context);
    const isQuiet = flags.failOn === 'critical' && answer.exitCode === exitCodes.warning;
    return isQuiet ? { ...answer, exitCode: 0 } : answer;
  },
};

async function judge(flags: HealthFlags, context: CommandContext): Promise<Answer> {
  try {
    const seen = await readHostStatus(flags, context);
    if (seen.kind !== 'unknown') return answerOf(seen);
    // After a crash of the agent, the state directory may still prove a critical problem.
    const { report } = seen;
    if (report !== undefined && judgeHostHealth(report).level === 'critical')
      return answerOf({ kind: 'disk', report });
    return unanswered('unknown', unknownExitCode, seen.why, context.surroundings);
  } catch (error) {
    // Report critical, because a monitor must not take an unreadable state for a healthy host.
    return unanswered('critical', exitCodes.critical, toWritError(error), context.surroundings);
  }
}

function answerOf(seen: KnownStatus): Answer {
  const { kind, report } = seen;
  const { level, findings } = judgeHostHealth(report);
  const { host, generation, agent, freshness, atMs, pause } = report;
  const age = seen.kind === 'file' ? { ageMs: seen.ageMs } : {};
  const details = { host, agent, generation, freshness: freshness.state, atMs, pause, findings };
  const by = seen.kind === 'file' ? `, by status.json, ${roughly(seen.ageMs)} old` : '';
  return {
    outcome: level,
    exitCode: exitCodes[level],
    level,
    details: { ...given(details), source: kind, ...age },
    lines: [`${healthLine(report, { level, findings })}${by}`],
  };
}

function unanswered(
  outcome: 'unknown' | 'critical',
  exitCode: number,
  error: WritError,
  places: DocsPlaces,
): Answer {
  const { code, message, hint, facts } = error;
  const [head = '', first = '', ...more] = message.split('\n').map((line) => line.trim());
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const line = `${outcome.toUpperCase()}  ${`${head} ${first}`.trim()}${rest} [${code}]`;
  return {
    outcome,
    exitCode,
    details: { code, message, hint, ...docsPage(code, places), facts },
    lines: [line],
  };
}
