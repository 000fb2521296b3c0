// Shared by `writ pull`, `writ rollback` and `writ reload`. Requests a cycle from the running agent, or runs it standalone; prints
// the steps while they happen; returns the lines and the exit code of the result. Ctrl-C does not stop a cycle that the agent has
// begun, and cancels a request that still waits for the job lock.

import type { CycleEventLine, CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { policyStands } from '../../core/cycle/policy-stands.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { ControlAnswer } from '../../core/protocol/control-protocol.js';
import type { Answer } from '../console/command.js';
import type { CommonFlags } from '../console/flags.js';
import { isOfFleet, showResult } from '../show/show-result.js';
import { stepPrinter } from '../show/show-steps.js';
import {
  type AgentRequest,
  isInterruptedRequest,
  isLockedByAgent,
  requestOrRun,
  type standaloneOptions,
} from './agent-requests.js';

export interface StandaloneCycleOptions extends ReturnType<typeof standaloneOptions> {
  readonly onEvent: (event: CycleEventLine) => void;
}

/** After a signal: the agent continues a cycle that it has begun (`interrupted`), and cancels another request (`given-up`). */
export type InterruptedWait = 'interrupted' | 'given-up';

/**
 * @param runCycle for a standalone run; undefined for a request that only a running agent can do
 * @returns the result, also of a standalone run that a signal ended; after a signal to a request `interrupted` if the agent
 *   continues a cycle that it has begun, else `given-up`
 * @throws WritError AGENT_UNREACHABLE, LOCK_HELD, INTERRUPTED, MESSAGE_MALFORMED, CONFIG_*, and errors of runCycle
 */
export async function requestCycle(
  agentRequest: AgentRequest & { readonly flags: CommonFlags },
  runCycle?: (options: StandaloneCycleOptions) => Promise<CycleResult>,
): Promise<CycleResult | InterruptedWait> {
  const { flags, context } = agentRequest;
  const onEvent = stepPrinter(context.reporter, flags);
  let isStandalone = false;
  let isNoted = false;
  let isBegun = false;
  /** The cycle of another request; this request waits for its end. */
  let awaitedCycle: string | undefined;
  const runStandalone = async (
    options: ReturnType<typeof standaloneOptions>,
    run: NonNullable<typeof runCycle>,
  ) => {
    isStandalone = true;
    if (!isNoted) context.reporter.note('no agent is running: this command does the work itself');
    isNoted = true;
    const result = await run({ ...options, onEvent }).catch((error: unknown) => {
      // If an agent holds the lock, the request is sent to it again.
      isStandalone = !isLockedByAgent(error);
      throw error;
    });
    for (const { code, message } of result.warnings.filter(isOfFleet))
      context.reporter.warn(`${message} [${code}]`);
    return context.signal.aborted ? withInterruptedExitCode(result) : result;
  };
  try {
    const onMessage = (message: ControlAnswer): void => {
      if (message.type === 'cycle.awaited') awaitedCycle = message.cycle;
      if (!('cycle' in message) || message.cycle !== awaitedCycle) isBegun = true;
      onEvent(message);
    };
    return await requestOrRun(
      { ...agentRequest, onMessage },
      expectCycleResult,
      runCycle && ((options) => runStandalone(options, runCycle)),
    );
  } catch (error) {
    if (!isStandalone && isInterruptedRequest(error)) return isBegun ? 'interrupted' : 'given-up';
    throw isBeforeFirstCycle(error) ? policyStands(error) : error;
  }
}

/** @returns whether a signal ended the wait, so that there is no result of a cycle */
export function isInterruptedWait(result: CycleResult | InterruptedWait): result is InterruptedWait {
  return result === 'interrupted' || result === 'given-up';
}

/**
 * @returns the answer of a command; its `code` and `hint` are those of the first problem, left out where the exit code
 * is 0
 */
export function cycleAnswer(result: CycleResult | InterruptedWait): Answer {
  if (result === 'interrupted') return interruptedAnswer;
  if (result === 'given-up') return givenUpAnswer;
  const { outcome, exitCode, schema: _schema, type: _type, ...details } = result;
  const { lines, next, undo, docs } = showResult(result);
  const worst = exitCode === 0 ? undefined : (result.problems[0] ?? findUnconfirmed(result));
  return {
    outcome,
    exitCode,
    details: { ...(worst === undefined ? {} : { code: worst.code, hint: worst.hint }), ...details },
    lines,
    next,
    undo,
    docs,
  };
}

/** @returns the warning because of which an activation has an exit code other than 0 */
function findUnconfirmed({ warnings }: CycleResult): Problem | undefined {
  return warnings.find(({ code }) => code === 'PROBE_SILENT' || code === 'WORKER_UNCONFIRMED');
}

/** In a standalone run the signal also ends the cycle, unless the swap is done. */
function withInterruptedExitCode(result: CycleResult): CycleResult {
  const isEnded = result.outcome === 'failed' && result.problems[0]?.code === 'INTERRUPTED';
  return isEnded ? { ...result, exitCode: interruptedAnswer.exitCode } : result;
}

const interruptedAnswer = {
  outcome: 'interrupted',
  exitCode: 130,
  details: { code: 'INTERRUPTED' },
  lines: ['INTERRUPTED  the agent continues this cycle; only this command has stopped waiting.'],
  next: 'writ status',
} satisfies Answer;

const givenUpAnswer = {
  ...interruptedAnswer,
  details: { code: 'INTERRUPTED', order: 'given-up' },
  lines: ['INTERRUPTED  this order was waiting for its turn; the agent gives up what of it had not begun.'],
} satisfies Answer;

/** True for errors after which no cycle has begun. After a lost connection a cycle may have begun. */
function isBeforeFirstCycle(error: unknown): boolean {
  if (!isWritError(error) || error.facts.policy !== undefined) return false;
  const { kind, code, facts } = error;
  return (
    kind === 'config' || code === 'AGENT_STOPPING' || ['denied', 'waiting'].includes(String(facts['reason']))
  );
}

function expectCycleResult(message: ControlAnswer): CycleResult {
  if (message.type === 'pull.result' || message.type === 'rollback.result') return message;
  throw new WritError('MESSAGE_MALFORMED', `the agent answered ${message.type} to a request for a cycle`);
}
