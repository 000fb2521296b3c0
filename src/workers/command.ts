// Any program that tells a worker, as `rndc reload`: its exit code is the answer. Half of such programs say
// "ok" before anything has happened, so that 0 means `told` unless the user vouches for it with `confirms`.
import { basename } from 'node:path';
import { WritError } from '../core/errors.js';
import { judgeHook } from '../core/hook-verdict.js';
import { maxHookOutputBytes } from '../core/limits.js';
import { type CommandResult, runCommand } from '../platform/run-command.js';
import { confirmed, refused, tailOf, told, unreachable } from './answer.js';
import type { Answer, Driver, DriverKind, ResetOptions, Target } from './driver.js';

interface CommandDriverOptions {
  readonly run: readonly [string, ...string[]];
  readonly confirms?: boolean;
}

const maxTailCharacters = 1000;

export const command: DriverKind = {
  name: 'run',
  properties: {
    run: {
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
    },
    confirms: {
      type: 'boolean',
      description: 'true (the program ends after the worker uses the generation) or false',
    },
  },
  required: [],
  create: (options) => createCommandDriver(options as unknown as CommandDriverOptions),
};

function createCommandDriver(options: CommandDriverOptions): Driver {
  requireKnownPlaceholders(options.run);
  const [program] = options.run;
  return {
    verdictClass: options.confirms === true ? 'true' : 'early',
    members: async () => [basename(program)],
    reset: async (_worker, reset) => judge(await run(options.run, reset), options),
  };
}

/** A placeholder left as it is would reach the program, which might even accept it. */
function requireKnownPlaceholders(argv: readonly string[]): void {
  const unknown = argv
    .flatMap((arg) => arg.match(/\{[a-z]+\}/g) ?? [])
    .filter((name) => name !== '{current}');
  const [program] = argv;
  if (unknown.length === 0 && program !== '') return;
  const what = program === '' ? 'an empty program name' : `unknown placeholder ${unknown.join(', ')}`;
  throw new WritError('CONFIG_INVALID', `reset.run: ${what}`, {
    facts: { expected: '{current}', actual: unknown.join(' ') },
  });
}

function run(argv: CommandDriverOptions['run'], reset: ResetOptions): Promise<CommandResult> {
  const { target, timeoutMs, signal } = reset;
  const [program, ...args] = argv;
  return runCommand({
    argv: [fill(program, target), ...args.map((arg) => fill(arg, target))],
    env: { WRIT_GENERATION_DIR: target.path, WRIT_GENERATION: String(target.generation) },
    cwd: '/',
    timeoutMs,
    maxOutputBytes: maxHookOutputBytes,
    ...(signal === undefined ? {} : { signal }),
  });
}

function fill(arg: string, target: Target): string {
  // A function, or `$&` in a path would be taken for a pattern of the replacement.
  return arg.replaceAll('{current}', () => target.path);
}

/** Only a code that the program chose as a no is the worker's; a program that broke says nothing about it. */
function judge(result: CommandResult, options: CommandDriverOptions): Answer {
  const { kind, reason } = judgeHook(result);
  const output = result.kind === 'not-started' ? '' : `${result.stdout}\n${result.stderr}`;
  const tail = tailOf(output, maxTailCharacters);
  const text = tail === '' ? reason : `${reason}: ${tail}`;
  if (kind === 'refused') return refused(text);
  if (kind !== 'ok' && kind !== 'warned') return unreachable(text);
  return options.confirms === true ? confirmed(text) : told(text);
}
