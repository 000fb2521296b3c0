// `writ pull --wait`: retries the pull until a verified policy is active, or the timeout expires. Decides the delays and the answer.
// Each attempt is a normal pull. A policy that is active already ends the wait.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { waitDelayMs } from '../../core/cycle/schedule.js';
import { isWritError, type WritError } from '../../core/errors.js';
import type { StatusReport } from '../../core/status/status.js';
import { hasVerifiedPolicy } from '../../core/status/systemd-text.js';
import type { Answer, CommandContext } from '../console/command.js';
import { deniedOr } from '../console/denied.js';
import { counted, roughly } from '../show/show-text.js';
import { cycleAnswer, type InterruptedWait, isInterruptedWait } from './cycle-command.js';

export interface PolicyWaitOptions {
  readonly waitMs: number;
  readonly context: Pick<CommandContext, 'clock' | 'reporter' | 'signal'>;
  readonly random01: () => number;
  /** One pull. */
  readonly pull: () => Promise<CycleResult | InterruptedWait>;
  readonly readStatus: () => Promise<StatusReport>;
  /** True for --settled, which waits for the newest release: an older active policy does not make a failed pull a success. */
  readonly keepsExitCode?: boolean;
}

type PullAttempt = CycleResult | WritError;

/**
 * An attempt that runs when the timeout expires is completed.
 * @returns exit code 0 if a verified policy is active and `keepsExitCode` is not set; else the exit code of the last attempt
 * @throws WritError at once for an error that a wait cannot fix; after the timeout the error of the last attempt
 */
export async function waitForPolicy(options: PolicyWaitOptions): Promise<Answer> {
  const { clock, signal } = options.context;
  const untilMs = clock.monotonicMs() + options.waitMs;
  for (let tries = 1; ; tries += 1) {
    const last = await attemptPull(options.pull);
    if (!isWritError(last) && isInterruptedWait(last)) return cycleAnswer(last);
    const active = isWritError(last) ? undefined : await readVerifiedStatus(last, options.readStatus);
    if (active !== undefined && !isWritError(last)) return activeAnswer(last, { ...options, active, tries });
    const leftMs = isPermanent(last) ? 0 : untilMs - clock.monotonicMs();
    if (leftMs <= 0) return timeoutAnswer(last, { tries, waitMs: options.waitMs });
    await pause(options, { last, tries, leftMs });
    if (signal.aborted) return interruptedAnswer(tries);
  }
}

async function attemptPull(pull: PolicyWaitOptions['pull']): Promise<PullAttempt | InterruptedWait> {
  try {
    return await pull();
  } catch (error) {
    if (!isWritError(error) || isPermanent(error)) throw error;
    return error;
  }
}

/** True for errors of configuration and permission, which stay the same while this command waits. */
function isPermanent(last: PullAttempt): boolean {
  if (!isWritError(last)) return last.exitCode === configExitCode;
  const { kind, code, facts } = deniedOr(last);
  return kind === 'usage' || kind === 'config' || code === 'DISK_DENIED' || facts['reason'] === 'denied';
}

const configExitCode = 2;

/** @returns the status if a verified policy is active. The result names the active generation, the status its verification. */
async function readVerifiedStatus(
  last: CycleResult,
  readStatus: PolicyWaitOptions['readStatus'],
): Promise<StatusReport | undefined> {
  if (last.generation === undefined) return undefined;
  const report = await readStatus();
  return hasVerifiedPolicy(report) ? report : undefined;
}

async function pause(
  { context, random01 }: PolicyWaitOptions,
  { last, tries, leftMs }: { readonly last: PullAttempt; readonly tries: number; readonly leftMs: number },
): Promise<void> {
  const retryAfterMs = retryAfterOf(last);
  const random = { tries, random01: random01() };
  const delayMs = waitDelayMs(retryAfterMs === undefined ? random : { ...random, retryAfterMs });
  const sleepMs = Math.min(delayMs, leftMs);
  context.reporter.note(
    `no verified policy is active yet: ${attemptText(last)}; next try in ${roughly(sleepMs)}, ${roughly(leftMs)} left`,
  );
  await context.clock.sleep(sleepMs, context.signal);
}

function retryAfterOf(last: PullAttempt): number | undefined {
  const problems = isWritError(last) ? [last] : last.problems;
  const delayMs = problems
    .map(({ facts }) => facts['retryAfterMs'])
    .find((value) => typeof value === 'number');
  return typeof delayMs === 'number' ? delayMs : undefined;
}

function attemptText(last: PullAttempt): string {
  if (isWritError(last)) return `${last.message.split('\n', 1)[0]} [${last.code}]`;
  const [problem] = last.problems;
  return problem === undefined ? last.outcome : `${last.outcome} [${problem.code}]`;
}

function activeAnswer(
  last: CycleResult,
  {
    active,
    tries,
    keepsExitCode = false,
  }: Pick<PolicyWaitOptions, 'keepsExitCode'> & { readonly active: StatusReport; readonly tries: number },
): Answer {
  const answer = cycleAnswer(last);
  if (keepsExitCode || last.outcome === 'activated' || last.outcome === 'unchanged')
    return { ...answer, details: { ...answer.details, tries } };
  const { generation } = active;
  return {
    ...answer,
    outcome: 'active',
    exitCode: 0,
    details: { ...answer.details, tries, pull: { outcome: last.outcome, exitCode: last.exitCode } },
    lines: [
      `ACTIVE  generation ${generation} is verified and active; the pull itself ended ${attemptText(last)}`,
      ...answer.lines.map((line) => `  ${line}`),
    ],
  };
}

function timeoutAnswer(
  last: PullAttempt,
  { tries, waitMs }: { readonly tries: number; readonly waitMs: number },
): Answer {
  if (isWritError(last)) throw last;
  const answer = cycleAnswer(last);
  const time = isPermanent(last)
    ? 'and waiting cannot fix this'
    : `within ${roughly(waitMs)}, in ${counted(tries, 'pull')}`;
  const text = `No verified policy became active ${time}.`;
  // A pull without changes is no success, because the caller waits for an active policy.
  const exitCode = last.exitCode === 0 ? 1 : last.exitCode;
  return {
    ...answer,
    exitCode,
    details: { ...answer.details, tries },
    lines: [...answer.lines, `  ${text}`],
  };
}

function interruptedAnswer(tries: number): Answer {
  const lines = ['INTERRUPTED  no verified policy is active yet.'];
  return { ...cycleAnswer('interrupted'), details: { code: 'INTERRUPTED', tries }, lines };
}
