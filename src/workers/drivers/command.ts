// Notifies a worker by a program, as `rndc reload`: its exit code is the answer. Many such programs report success before the worker
// acts, so that exit code 0 means `notified`, unless the user sets `confirms`.
import { basename } from 'node:path';
import type { NotNowConfig, UnreachableConfig } from '../../core/config/config.js';
import { notNowOfCommand, unreachableKey } from '../../core/config/not-now-keys.js';
import { judgeHook } from '../../core/cycle/hook-verdict.js';
import { WritError } from '../../core/errors.js';
import { maxHookOutputBytes } from '../../core/limits.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import { confirmed, notified, notNow, refused, tailOf, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, ResetOptions } from '../contract/driver.js';
import { deadText, findDeathHint } from '../contract/liveness.js';
import { createWorkerProcess, livenessVerb, processVerbs } from '../identity/worker-process.js';
import { absoluteFile, driverKind, type OptionsOf, property, yesOrNo } from '../shared/driver-options.js';
import { patternOf } from '../shared/expectation.js';
import {
  type Command,
  commandSchema,
  listByCommand,
  type MembersOptions,
  membersProperty,
} from '../shared/member-command.js';
import { type DeferralRule, deferralRule } from '../shared/not-now.js';
import {
  fillPlaceholders,
  isWorkerName,
  requireKnownPlaceholders,
  usesWorkerName,
} from '../shared/placeholders.js';
import { requireOwnPlace } from '../shared/socket-set.js';
import { type UnreachedRule, unreachedRule } from '../shared/unreachable.js';

const maxTailCharacters = 1000;

const properties = {
  run: commandSchema,
  unreachable: property<UnreachableConfig>(unreachableKey),
  notNow: property<NotNowConfig>(notNowOfCommand),
  restart: property<{ readonly run: Command }>({
    type: 'object',
    additionalProperties: false,
    required: ['run'],
    properties: { run: commandSchema },
    description: 'a group of keys, as {run: [service, named, restart]}',
  }),
  members: membersProperty,
  pidFile: absoluteFile('an absolute path of a pid file, as /run/named/named.pid'),
  confirms: yesOrNo('the program ends after the worker uses the generation'),
};

type CommandOptions = OptionsOf<typeof properties, 'run'>;

export const command = driverKind({ name: 'run', properties, create: createDriver });

function createDriver(options: CommandOptions, context: DriverContext): Driver {
  const { run, restart, members, pidFile } = options;
  requireCommand('reset.run', run, members);
  if (restart !== undefined) requireCommand('reset.restart.run', restart.run, members);
  if (pidFile !== undefined) requireOwnPlace('reset.pidFile', pidFile, members);
  const isUnreached = unreachedRule(options.unreachable, (source) => patternOf('unreachable.match', source));
  const busy = deferralRule(options.notNow);
  const [program] = run;
  const process = createWorkerProcess({ process: context.process, pidFile }, context);
  const { liveness } = livenessVerb(process);
  return {
    verdictClass: options.confirms === true ? 'true' : 'early',
    members: async () => (members === undefined ? [basename(program)] : listByCommand(members)),
    reset: async (worker, reset) => {
      process?.searchNow(worker);
      const answer = await notify(run, worker, reset, { ...options, isUnreached, busy });
      // A program exits alike if it cannot connect and if its daemon refuses. A dead worker did not refuse.
      const isDead = answer.kind === 'refused' && (await liveness?.(worker)) === 'dead';
      if (!isDead) return answer;
      const why = await findDeathHint(processVerbs(process), worker);
      return unreachable(
        why === undefined ? `nobody lives there: ${answer.text}` : deadText(why, answer.text),
      );
    },
    restart:
      restart && ((worker, reset) => notify(restart.run, worker, reset, { ...options, isUnreached, busy })),
    liveness,
    ...processVerbs(process),
  };
}

interface NotifyOptions extends CommandOptions {
  readonly isUnreached: UnreachedRule;
  readonly busy: DeferralRule;
}

/** Requires valid placeholders. With `members`, a command without {worker} gets the name in its environment. */
function requireCommand(key: string, argv: Command, members: MembersOptions | undefined): void {
  requireKnownPlaceholders(key, argv);
  if (argv[0] === '') throw new WritError('CONFIG_INVALID', `${key}: an empty program name`);
  if (members === undefined && usesWorkerName(argv))
    throw new WritError('CONFIG_INVALID', `${key}: {worker} needs \`members\``);
}

async function notify(
  argv: Command,
  worker: string,
  reset: ResetOptions,
  options: NotifyOptions,
): Promise<Answer> {
  // Check names from `members`, which become arguments. The name of a program needs no check.
  if (options.members !== undefined && !isWorkerName(worker))
    return unreachable(`${worker} is not a valid name`);
  return judge(await run(argv, worker, reset), options);
}

function run(argv: Command, worker: string, reset: ResetOptions): Promise<CommandResult> {
  const { target, ...limits } = reset;
  const fill = (text: string): string => fillPlaceholders(text, target, worker);
  const [program, ...args] = argv;
  return runCommand({
    argv: [fill(program), ...args.map(fill)],
    env: {
      WRIT_GENERATION_DIR: target.path,
      WRIT_GENERATION: String(target.generation),
      WRIT_WORKER: worker,
    },
    cwd: '/',
    maxOutputBytes: maxHookOutputBytes,
    ...limits,
  });
}

/** A refusal needs an exit code that means it. A program that failed in another way gives no verdict. */
function judge(result: CommandResult, options: NotifyOptions): Answer {
  const { kind, reason } = judgeHook(result);
  const output = result.kind === 'not-started' ? '' : `${result.stdout}\n${result.stderr}`;
  const tail = tailOf(output, maxTailCharacters);
  const text = tail === '' ? reason : `${reason}: ${tail}`;
  const isUnreached = result.kind === 'exited' && options.isUnreached(result.exitCode, result);
  if (kind === 'refused' && isUnreached) return unreachable(text);
  if (result.kind === 'exited' && kind !== 'ok' && options.busy.forExit(result.exitCode, result))
    return notNow(text);
  if (kind === 'refused') return refused(text);
  // Also exit codes 32 to 63, which mean a warning of a check: curl exits with them if there is no answer.
  if (kind !== 'ok') return unreachable(text);
  return options.confirms === true ? confirmed(text) : notified(text);
}
