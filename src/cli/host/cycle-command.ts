// What `writ pull` and `writ rollback` share: ask the running agent, or do it alone when none runs; show the steps
// while they happen; answer with the block and the exit code of the result. Ctrl-C leaves the agent's cycle alone.

import type { CycleEventLine, CycleResult } from '../../core/cycle/cycle-report.js';
import { policyStands } from '../../core/cycle/policy-stands.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { ControlAnswer, ControlRequest } from '../../core/protocol/control-protocol.js';
import type { Answer, CommandContext } from '../console/command.js';
import { showResult } from '../show/show-result.js';
import { stepPrinter } from '../show/show-steps.js';
import type { AloneOptions } from './agent-doors.js';
import { ask, isNotRunning, whoAsks } from './ask.js';

export interface CycleQuestion {
  readonly configPath: string;
  readonly detail: 'all' | 'news';
  readonly context: CommandContext;
  readonly request: (by: string) => ControlRequest;
  /** Left out for what only a running agent can do. */
  readonly alone?: (options: AloneOptions) => Promise<CycleResult>;
}

/** @returns the result, or `interrupted` when a signal ended the wait (the agent goes on) */
export async function askForCycle(question: CycleQuestion): Promise<CycleResult | 'interrupted'> {
  try {
    return await askOrAct(question);
  } catch (error) {
    throw isBeforeAnyCycle(error) ? policyStands(error) : error;
  }
}

async function askOrAct(question: CycleQuestion): Promise<CycleResult | 'interrupted'> {
  const { configPath, context, detail } = question;
  const { reporter, signal, version } = context;
  const onEvent = stepPrinter({ reporter, detail });
  const by = whoAsks(context.env);
  try {
    const onMessage = (message: ControlAnswer): void => {
      if (isEvent(message)) onEvent(message);
    };
    return resultOf(await ask({ request: question.request(by), configPath, context, onMessage }));
  } catch (error) {
    if (isInterrupted(error)) return 'interrupted';
    if (!isNotRunning(error) || question.alone === undefined) throw error;
  }
  reporter.note('no agent is running: this command does it alone');
  return question.alone({ configPath, by, version, signal, onEvent });
}

/** @param type of the JSON object: that of the command, as `pull.result` */
export function cycleAnswer(type: string, result: CycleResult | 'interrupted'): Answer {
  if (result === 'interrupted') return interruptedAnswer(type);
  const { outcome, exitCode, schema: _schema, type: _type, ...details } = result;
  const { lines, next } = showResult(result);
  const worst = exitCode === 0 ? undefined : result.problems[0];
  return {
    type,
    outcome,
    exitCode,
    details: { ...(worst === undefined ? {} : { code: worst.code, hint: worst.hint }), ...details },
    lines,
    ...(next === undefined ? {} : { next }),
  };
}

const interruptedExitCode = 130;

function interruptedAnswer(type: string): Answer {
  return {
    type,
    outcome: 'interrupted',
    exitCode: interruptedExitCode,
    details: { code: 'INTERRUPTED' },
    lines: ['INTERRUPTED  the agent goes on with this cycle; only the wait for it has ended.'],
    next: 'writ status',
  };
}

function isInterrupted(error: unknown): boolean {
  return isWritError(error) && error.code === 'INTERRUPTED';
}

/** After a lost connection nobody knows; after these no cycle has begun. */
function isBeforeAnyCycle(error: unknown): boolean {
  if (!isWritError(error) || error.facts.policy !== undefined) return false;
  const { kind, code, facts } = error;
  return kind === 'config' || code === 'AGENT_STOPPING' || facts['reason'] === 'denied';
}

function isEvent(message: ControlAnswer): message is CycleEventLine {
  const { type } = message;
  return type === 'cycle.started' || type.startsWith('step.');
}

function resultOf(message: ControlAnswer): CycleResult {
  if (message.type === 'pull.result' || message.type === 'rollback.result') return message;
  throw new WritError('MESSAGE_MALFORMED', `the agent answered ${message.type} to a request for a cycle`);
}
