// Workers that a command of the user names, one a line, as the servers of a pool: asked anew whenever the set is
// read. Owns the bounds on what it says; a name goes into arguments, paths and URLs, so that it is only a name.
import { WritError } from '../../core/errors.js';
import { maxHookOutputBytes } from '../../core/limits.js';
import { durationPattern, parseDuration } from '../../core/names.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import { tailOf } from '../contract/answer.js';
import { isWorkerName } from './placeholders.js';

export interface MembersOptions {
  readonly run: readonly [string, ...string[]];
  /** A duration, as `5s`. */
  readonly timeout?: string;
}

/** A program and its arguments, without NUL, which cuts off what follows. */
export const commandSchema = {
  type: 'array',
  items: {
    type: 'string',
    maxLength: 10_000,
    pattern: '^[^\\u0000]*$',
    description: 'a text (put it in quotes)',
  },
  minItems: 1,
  maxItems: 256,
  description: 'a list: a program and its arguments, as [rndc, reload]',
} as const;

export const membersProperty = {
  type: 'object',
  additionalProperties: false,
  required: ['run'],
  properties: {
    run: commandSchema,
    timeout: {
      type: 'string',
      pattern: durationPattern,
      description: 'a duration: a whole number with ms, s, m, h or d, as 5s',
    },
  },
  description: 'a group of keys, as {run: [list-servers]}',
} as const;

const defaultTimeoutMs = 5000;
const maxTimeoutMs = 60_000;
const maxMembers = 1024;

/**
 * @returns the names, sorted, each once
 * @throws WritError WORKER_UNREACHABLE when the command does not end well, or says what is no name: then nobody can
 *   say who the workers are, and none of them is gone
 */
export async function listByCommand(options: MembersOptions): Promise<readonly string[]> {
  const timeoutMs = Math.min(parseDuration(options.timeout ?? '') ?? defaultTimeoutMs, maxTimeoutMs);
  const result = await runCommand({
    argv: options.run,
    cwd: '/',
    timeoutMs,
    maxOutputBytes: maxHookOutputBytes,
  });
  if (result.kind !== 'exited' || result.exitCode !== 0) throw unlisted(options, endOf(result));
  if (result.truncated) throw unlisted(options, `it says more than ${maxHookOutputBytes} bytes`);
  const names = [...new Set(result.stdout.split('\n').filter((line) => line !== ''))];
  const wrong = names.find((name) => !isWorkerName(name));
  if (wrong !== undefined) throw unlisted(options, `it says what is no name: ${tailOf(wrong, 100)}`);
  if (names.length > maxMembers) throw unlisted(options, `it names more than ${maxMembers} workers`);
  return names.sort();
}

const maxTailCharacters = 500;

function endOf(result: CommandResult): string {
  if (result.kind === 'not-started') return `it was not started: ${result.reason}`;
  const how = result.kind === 'exited' ? `exit ${result.exitCode}` : result.kind;
  const tail = tailOf(`${result.stdout}\n${result.stderr}`, maxTailCharacters);
  return tail === '' ? how : `${how}: ${tail}`;
}

function unlisted({ run }: MembersOptions, reason: string): WritError {
  return new WritError('WORKER_UNREACHABLE', `\`members\` of ${run[0]}: ${reason}`, {
    facts: { program: run[0], reason },
  });
}
