// What `writ pull` and `writ rollback` share: ask the running agent, or do it alone when none runs; show the steps
// while they happen; answer with the block and the exit code of the result. Ctrl-C leaves the agent's cycle alone,
// and takes back an order that still waits for its turn.

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

/** How a signal ended the wait: the agent goes on with a cycle that it had begun, and gives up an order that it had not. */
export type InterruptedWait = 'interrupted' | 'given-up';

/**
 * @param alone left out for what only a running agent can do
 * @returns the result, or how a signal ended the wait for it
 */
export async function requestCycle(
  question: AgentRequest & { readonly flags: CommonFlags },
  alone?: (options: StandaloneCycleOptions) => Promise<CycleResult>,
): Promise<CycleResult | InterruptedWait> {
  const { flags, context } = question;
  const onEvent = stepPrinter(context.reporter, flags);
  let isAlone = false;
  let isTold = false;
  let isBegun = false;
  /** The cycle of another request, whose end this one waits for. */
  let awaited: string | undefined;
  const act = async (options: ReturnType<typeof standaloneOptions>, own: NonNullable<typeof alone>) => {
    isAlone = true;
    if (!isTold) context.reporter.note('no agent is running: this command does the work itself');
    isTold = true;
    const result = await own({ ...options, onEvent }).catch((error: unknown) => {
      // The agent is asked again.
      isAlone = !isLockedByAgent(error);
      throw error;
    });
    for (const { code, message } of result.warnings.filter(isOfFleet))
      context.reporter.warn(`${message} [${code}]`);
    return context.signal.aborted ? withInterruptedExitCode(result) : result;
  };
  try {
    const onMessage = (message: ControlAnswer): void => {
      if (message.type === 'cycle.awaited') awaited = message.cycle;
      if (!('cycle' in message) || message.cycle !== awaited) isBegun = true;
      onEvent(message);
    };
    const asked = { ...question, onMessage };
    return await requestOrRun(asked, expectCycleResult, alone && ((options) => act(options, alone)));
  } catch (error) {
    if (!isAlone && isInterruptedRequest(error)) return isBegun ? 'interrupted' : 'given-up';
    throw isBeforeFirstCycle(error) ? policyStands(error) : error;
  }
}

export function isInterruptedWait(result: CycleResult | InterruptedWait): result is InterruptedWait {
  return result === 'interrupted' || result === 'given-up';
}

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

/** Why an activation ends with an exit code that is not 0. */
function findUnconfirmed({ warnings }: CycleResult): Problem | undefined {
  return warnings.find(({ code }) => code === 'PROBE_SILENT' || code === 'WORKER_UNCONFIRMED');
}

/** Without an agent this command is the cycle: the signal ended both, where the swap had not been yet. */
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

/** After a lost connection nobody knows; after these no cycle has begun. */
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
