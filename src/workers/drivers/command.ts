// Any program that tells a worker, as `rndc reload`: its exit code is the answer. Half of such programs say
// "ok" before anything has happened, so that 0 means `told` unless the user vouches for it with `confirms`.
import { basename } from 'node:path';
import { judgeHook } from '../../core/cycle/hook-verdict.js';
import { WritError } from '../../core/errors.js';
import { maxHookOutputBytes } from '../../core/limits.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import { confirmed, refused, tailOf, told, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverKind, ResetOptions } from '../contract/driver.js';
import {
  commandSchema,
  listByCommand,
  type MembersOptions,
  membersProperty,
} from '../shared/member-command.js';
import { daemonLiveness, daemonPid } from '../shared/pid-file.js';
import {
  fillPlaceholders,
  isWorkerName,
  requireKnownPlaceholders,
  usesWorkerName,
} from '../shared/placeholders.js';
import { requireOwnPlace } from '../shared/socket-set.js';

type Command = readonly [string, ...string[]];

interface CommandDriverOptions {
  readonly run: Command;
  readonly restart?: { readonly run: Command };
  readonly members?: MembersOptions;
  readonly pidFile?: string;
  readonly confirms?: boolean;
}

const maxTailCharacters = 1000;

export const command: DriverKind = {
  name: 'run',
  properties: {
    run: commandSchema,
    restart: {
      type: 'object',
      additionalProperties: false,
      required: ['run'],
      properties: { run: commandSchema },
      description: 'a group of keys, as {run: [service, named, restart]}',
    },
    members: membersProperty,
    pidFile: {
      type: 'string',
      pattern: '^/[^\\n\\u0000]*[^/\\n\\u0000]$',
      maxLength: 4096,
      description: 'an absolute path of a pid file, as /run/named/named.pid',
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
  const { run, restart, members, pidFile } = options;
  requireCommand('reset.run', run, members);
  if (restart !== undefined) requireCommand('reset.restart.run', restart.run, members);
  if (pidFile !== undefined) requireOwnPlace('reset.pidFile', pidFile, members);
  const [program] = run;
  const pidFileOf = (file: string, worker: string): string => file.replaceAll('{worker}', () => worker);
  return {
    verdictClass: options.confirms === true ? 'true' : 'early',
    members: async () => (members === undefined ? [basename(program)] : listByCommand(members)),
    reset: async (worker, reset) => tell(run, worker, reset, options),
    ...(restart === undefined
      ? {}
      : {
          restart: async (worker: string, reset: ResetOptions) => tell(restart.run, worker, reset, options),
        }),
    ...(pidFile === undefined
      ? {}
      : {
          liveness: async (worker: string) => daemonLiveness(pidFileOf(pidFile, worker)),
          pid: async (worker: string) => daemonPid(pidFileOf(pidFile, worker)),
        }),
  };
}

/** With `members` a command that has no {worker} finds it in its environment. */
function requireCommand(key: string, argv: Command, members: MembersOptions | undefined): void {
  requireKnownPlaceholders(key, argv);
  if (argv[0] === '') throw new WritError('CONFIG_INVALID', `${key}: an empty program name`);
  if (members === undefined && usesWorkerName(argv))
    throw new WritError('CONFIG_INVALID', `${key}: {worker} needs \`members\``);
}

async function tell(
  argv: Command,
  worker: string,
  reset: ResetOptions,
  options: CommandDriverOptions,
): Promise<Answer> {
  // The name of a program may be anything; a name that somebody else gave becomes an argument.
  if (options.members !== undefined && !isWorkerName(worker)) return unreachable(`${worker} is no name`);
  return judge(await run(argv, worker, reset), options);
}

function run(argv: Command, worker: string, reset: ResetOptions): Promise<CommandResult> {
  const { target, timeoutMs, signal } = reset;
  const [program, ...args] = argv;
  return runCommand({
    argv: [
      fillPlaceholders(program, target, worker),
      ...args.map((arg) => fillPlaceholders(arg, target, worker)),
    ],
    env: {
      WRIT_GENERATION_DIR: target.path,
      WRIT_GENERATION: String(target.generation),
      WRIT_WORKER: worker,
    },
    cwd: '/',
    timeoutMs,
    maxOutputBytes: maxHookOutputBytes,
    ...(signal === undefined ? {} : { signal }),
  });
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
