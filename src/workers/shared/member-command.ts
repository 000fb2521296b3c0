// Lists workers by a configured command, one name a line, as the servers of a pool. The command runs at each listing. Owns the bounds on
// its output. Names become parts of arguments, paths and URLs, so that they are checked.
import type { WritError } from '../../core/errors.js';
import { maxHookOutputBytes } from '../../core/limits.js';
import { durationPattern, parseDuration } from '../../core/names.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import { tailOf, unlisted } from '../contract/answer.js';
import { property, text } from './driver-options.js';
import { isWorkerName } from './placeholders.js';

export interface MembersOptions {
  readonly run: Command;
  /** Timeout of the command, as `5s`. */
  readonly timeout?: string;
}

/** A program and its arguments, without NUL, which would truncate an argument. */
export type Command = readonly [string, ...string[]];

export const commandSchema = property<Command>({
  type: 'array',
  items: text('a text (put it in quotes)', { maxLength: 10_000, pattern: '^[^\\u0000]*$' }),
  minItems: 1,
  maxItems: 256,
  description: 'a list: a program and its arguments, as [rndc, reload]',
});

export const membersProperty = property<MembersOptions>({
  type: 'object',
  additionalProperties: false,
  required: ['run'],
  properties: {
    run: commandSchema,
    timeout: text('a duration: a whole number with ms, s, m, h or d, as 5s', { pattern: durationPattern }),
  },
  description: 'a group of keys, as {run: [list-servers]}',
});

const defaultTimeoutMs = 5000;
const maxTimeoutMs = 60_000;
const maxMembers = 1024;

/**
 * @returns sorted names without repetitions
 * @throws WritError WORKER_UNREACHABLE if the command fails, prints an invalid name, too much, or more than 1024 names: the
 *   workers are unknown, and none counts as departed
 */
export async function listByCommand(options: MembersOptions): Promise<readonly string[]> {
  const timeoutMs = Math.min(parseDuration(options.timeout ?? '') ?? defaultTimeoutMs, maxTimeoutMs);
  const { run } = options;
  const result = await runCommand({ argv: run, cwd: '/', timeoutMs, maxOutputBytes: maxHookOutputBytes });
  const wrong = (reason: string): WritError =>
    unlisted(`\`members\` of ${run[0]}: ${reason}`, { program: run[0], reason });
  if (result.kind === 'not-started') throw wrong(`it was ${commandEndText(result)}`);
  if (result.kind !== 'exited' || result.exitCode !== 0) throw wrong(commandEndText(result));
  if (result.truncated) throw wrong(`it prints more than ${maxHookOutputBytes} bytes`);
  const names = [...new Set(result.stdout.split('\n').filter((line) => line !== ''))];
  const noName = names.find((name) => !isWorkerName(name));
  if (noName !== undefined) throw wrong(`it printed an invalid name: ${tailOf(noName, 100)}`);
  if (names.length > maxMembers) throw wrong(`it names more than ${maxMembers} workers`);
  return names.sort();
}

const maxTailCharacters = 500;

/** @returns how a command ended and the end of its output, on one line */
export function commandEndText(result: CommandResult): string {
  if (result.kind === 'not-started') return `not started: ${result.reason}`;
  const how = result.kind === 'exited' ? `exit ${result.exitCode}` : result.kind;
  const tail = tailOf(`${result.stdout}\n${result.stderr}`, maxTailCharacters);
  return tail === '' ? how : `${how}: ${tail}`;
}
