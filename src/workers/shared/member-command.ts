// Workers that a command of the user names, one a line, as the servers of a pool: asked again whenever the set is
// read. Owns the bounds on what it says; a name goes into arguments, paths and URLs, so that it is only a name.
import type { WritError } from '../../core/errors.js';
import { maxHookOutputBytes } from '../../core/limits.js';
import { durationPattern, parseDuration } from '../../core/names.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import { tailOf, unlisted } from '../contract/answer.js';
import { property, text } from './driver-options.js';
import { isWorkerName } from './placeholders.js';

export interface MembersOptions {
  readonly run: Command;
  /** A duration, as `5s`. */
  readonly timeout?: string;
}

/** A program and its arguments, without NUL, which cuts off what follows. */
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
 * @returns the names, sorted, each once
 * @throws WritError WORKER_UNREACHABLE when the command does not end well, or says what is no name: then nobody can
 *   say who the workers are, and none of them is gone
 */
export async function listByCommand(options: MembersOptions): Promise<readonly string[]> {
  const timeoutMs = Math.min(parseDuration(options.timeout ?? '') ?? defaultTimeoutMs, maxTimeoutMs);
  const { run } = options;
  const result = await runCommand({ argv: run, cwd: '/', timeoutMs, maxOutputBytes: maxHookOutputBytes });
  const wrong = (reason: string): WritError =>
    unlisted(`\`members\` of ${run[0]}: ${reason}`, { program: run[0], reason });
  if (result.kind === 'not-started') throw wrong(`it was ${endOf(result)}`);
  if (result.kind !== 'exited' || result.exitCode !== 0) throw wrong(endOf(result));
  if (result.truncated) throw wrong(`it says more than ${maxHookOutputBytes} bytes`);
  const names = [...new Set(result.stdout.split('\n').filter((line) => line !== ''))];
  const noName = names.find((name) => !isWorkerName(name));
  if (noName !== undefined) throw wrong(`it printed an invalid name: ${tailOf(noName, 100)}`);
  if (names.length > maxMembers) throw wrong(`it names more than ${maxMembers} workers`);
  return names.sort();
}

const maxTailCharacters = 500;

/** @returns how a command ended and the end of what it wrote, in one line */
export function endOf(result: CommandResult): string {
  if (result.kind === 'not-started') return `not started: ${result.reason}`;
  const how = result.kind === 'exited' ? `exit ${result.exitCode}` : result.kind;
  const tail = tailOf(`${result.stdout}\n${result.stderr}`, maxTailCharacters);
  return tail === '' ? how : `${how}: ${tail}`;
}
