// `writ pull`: makes the newest policy active now, and reports the verified outcome.

import { isWritError, WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import type { StatusReport } from '../../../core/status/status.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, numberFlag } from '../../console/flag-values.js';
import { type CommonFlags, type FlagValues, optional, toggle } from '../../console/flags.js';
import { callerName, configFlag, standaloneOptions, withConfig } from '../../host/agent-requests.js';
import { warnOfEarlyClock } from '../../host/clock-hint.js';
import { cycleAnswer, requestCycle } from '../../host/cycle-command.js';
import { agentModules, type StandaloneBakeRound } from '../../host/lazy-agent-modules.js';
import { readKnownStatus } from '../../host/read-status.js';
import { waitForPolicy } from '../../host/wait-for-policy.js';
import {
  answerWithoutWait,
  type SettledWaitObservation,
  waitForSettled,
} from '../../host/wait-for-settled.js';

const flags = {
  ...configFlag,
  force: toggle(
    '--force',
    'fetch and verify everything again; ignores a pause, holds and remembered refusals',
  ),
  bake: toggle(
    '--no-bake',
    'with --force: what is active then counts as settled at once, and nothing takes it back',
  ),
  exitUnchanged: optional('--exit-unchanged <code>', 'exit code when nothing changed', numberFlag(0, 255)),
  wait: optional('--wait <time>', 'retry for this long, until a verified policy is active', durationFlag),
  settled: toggle(
    '--settled',
    'after a pull that ended with 0 or 4: wait until the releases have settled, 3 bake times or --wait',
  ),
};
type PullFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<PullFlags> = {
  examples: ['writ pull', 'writ pull --force --json', 'writ pull --wait 5m', 'writ pull --settled'],
  exitCodes: [
    '0  activated, or unchanged; with --wait: a verified policy is active; with --settled: settled',
    '1  failed; the running policy stays; try again',
    '2  usage or configuration',
    '3  rejected; the old policy stays',
    '4  degraded: active, but a worker was not notified; or activated, but unconfirmed',
    '5  rolled back; with --settled: also within the bake time',
    '6  blocked; with --settled: also failed, with nothing to go back to',
    '7  another process is busy',
    '8  deferred: paused, held, or not now; with --settled: also a bake time that is not over',
    '130  interrupted; the agent continues what it had begun',
  ],
  onSignal: 'drain',
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const answer = withConfig(await answerOf(flags, context).finally(() => warnOfEarlyClock(context)), flags);
    const exitCode =
      answer.outcome === 'unchanged' && answer.exitCode === 0 ? flags.exitUnchanged : undefined;
    return exitCode === undefined ? answer : { ...answer, exitCode };
  },
};

async function answerOf(flags: PullFlags & CommonFlags, context: CommandContext): Promise<Answer> {
  const force = flags.force === true;
  const isKept = flags.bake === false;
  const noBake = isKept ? { noBake: true as const } : {};
  if (isKept && !force)
    throw new WritError('USAGE', '--no-bake needs --force: it keeps a release on purpose');
  if (isKept && flags.settled === true)
    throw new WritError('USAGE', '--no-bake settles at once: there is nothing to wait for with --settled');
  const request = { type: 'pull', force, by: callerName(context.env), ...noBake } as const;
  const pull = (): ReturnType<typeof requestCycle> =>
    requestCycle({ request, flags, context }, async (options) =>
      (await agentModules.withoutAgent()).pullStandalone({ ...options, ...noBake, force }),
    );
  const startMs = context.clock.monotonicMs();
  const answer = await pulled(pull, flags, context);
  if (flags.settled !== true) return answer;
  if (!isActive(answer)) return answerWithoutWait(answer, await readStatusIfPossible(flags, context));
  const leftMs = flags.wait && Math.max(0, startMs + flags.wait - context.clock.monotonicMs());
  return waitForSettled({
    ...{ answer, context, observe: createObserver(flags, context) },
    ...given({ waitMs: leftMs }),
  });
}

async function pulled(
  pull: () => ReturnType<typeof requestCycle>,
  flags: PullFlags & CommonFlags,
  context: CommandContext,
): Promise<Answer> {
  const { wait: waitMs } = flags;
  if (waitMs === undefined) return cycleAnswer(await pull());
  const readStatus = async () => (await readKnownStatus(flags, context)).report;
  const keepsExitCode = flags.settled === true;
  return waitForPolicy({ waitMs, context, random01: Math.random, pull, readStatus, keepsExitCode });
}

/** @returns undefined when the status is unreadable, so that the outcome of the pull is still reported */
async function readStatusIfPossible(
  flags: PullFlags & CommonFlags,
  context: CommandContext,
): Promise<StatusReport | undefined> {
  try {
    return (await readKnownStatus(flags, context)).report;
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** After every other outcome, no new release is active. */
function isActive({ outcome, exitCode = 0 }: Answer): boolean {
  return exitCode === 0 || outcome === 'degraded' || outcome === 'activated';
}

/** The agent observes the workers. Without an agent this command does, under the lock, and rolls back a failed release. */
function createObserver(
  flags: PullFlags & CommonFlags,
  context: CommandContext,
): () => Promise<SettledWaitObservation> {
  let lookAlone: StandaloneBakeRound | undefined;
  return async () => {
    const status = await readKnownStatus(flags, context);
    if (status.kind !== 'disk') return { report: status.report, by: 'agent' };
    lookAlone ??= (await agentModules.lookAlone()).createStandaloneBakeRound();
    const { waits } = await lookAlone(standaloneOptions(flags, context));
    return { report: (await readKnownStatus(flags, context)).report, by: 'command', ...given({ waits }) };
  };
}
