// The command line as a function: the table of commands, signals, and the one place that turns errors into exit codes.
// Imports the parser and render only; every command is its own dynamic import. Takes the process from its caller.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { toWritError, WritError } from '../core/errors.js';
import { systemClock } from '../platform/time/clock.js';
import type { CommandContext, CommandEntry, Surroundings } from './console/command.js';
import { deniedOr } from './console/denied.js';
import { type CommonFlags, type Invocation, parseCommandLine } from './console/program.js';
import { createRenderer, type Renderer } from './console/render.js';

const commands: readonly CommandEntry[] = [
  {
    name: 'init',
    summary: 'make a signed repository and its keys',
    load: () => import('./commands/root/init.js'),
  },
  {
    name: 'publish',
    summary: 'sign a directory as the next release of a bundle',
    load: () => import('./commands/release/publish.js'),
  },
  {
    name: 'withdraw',
    summary: 'take a bad release back: its channel goes to an older one',
    load: () => import('./commands/release/withdraw.js'),
  },
  {
    name: 'promote',
    summary: 'give the release of one channel to another',
    load: () => import('./commands/release/promote.js'),
  },
  {
    name: 'delegate',
    summary: 'let a team sign its own bundles',
    load: () => import('./commands/release/delegate.js'),
  },
  {
    name: 'refresh',
    summary: 'sign snapshot and timestamp of a repository anew',
    load: () => import('./commands/release/refresh.js'),
  },
  {
    name: 'inspect',
    summary: 'what an archive or a repository holds, verified',
    load: () => import('./commands/release/inspect.js'),
  },
  {
    name: 'repo status',
    summary: 'versions, keys and days to expiry of a repository',
    load: () => import('./commands/repo/repo-status.js'),
  },
  {
    name: 'key new',
    summary: 'make a signing key and its public file',
    load: () => import('./commands/keys/key-new.js'),
  },
  {
    name: 'key list',
    summary: 'the keys of a directory and the roles they hold',
    load: () => import('./commands/keys/key-list.js'),
  },
  {
    name: 'key show',
    summary: 'what a key file or a public key is',
    load: () => import('./commands/keys/key-show.js'),
  },
  {
    name: 'key passphrase',
    summary: 'put a key under another passphrase',
    load: () => import('./commands/keys/key-passphrase.js'),
  },
  {
    name: 'root rotate',
    summary: 'propose the next root: keys, thresholds, lives, or only a new expiry',
    load: () => import('./commands/root/root-rotate.js'),
  },
  {
    name: 'root add-key',
    summary: 'propose a root with one key more',
    load: () => import('./commands/root/root-add-key.js'),
  },
  {
    name: 'root remove-key',
    summary: 'propose a root without a key',
    load: () => import('./commands/root/root-remove-key.js'),
  },
  {
    name: 'root threshold',
    summary: 'propose a root that needs more or fewer signatures',
    load: () => import('./commands/root/root-threshold.js'),
  },
  {
    name: 'sign',
    summary: 'sign the proposal of a root that somebody mailed you',
    load: () => import('./commands/root/sign.js'),
  },
  {
    name: 'root commit',
    summary: 'make a proposal that enough people signed the root of the repository',
    load: () => import('./commands/root/root-commit.js'),
  },
  {
    name: 'repo check',
    summary: 'verify every root, role and archive of a repository',
    load: () => import('./commands/repo/repo-check.js'),
  },
  {
    name: 'repo gc',
    summary: 'remove what no kept version of a repository refers to',
    load: () => import('./commands/repo/repo-gc.js'),
  },
  {
    name: 'repo export',
    summary: 'a copy of what is live, for hosts without a network',
    load: () => import('./commands/repo/repo-export.js'),
  },
  {
    name: 'serve',
    summary: 'serve a repository over HTTP or HTTPS',
    load: () => import('./commands/repo/serve.js'),
  },
  {
    name: 'agent',
    summary: 'run the agent of this host',
    load: () => import('./commands/host/agent.js'),
  },
  {
    name: 'pull',
    summary: 'make the newest policy active now, and say what really happened',
    load: () => import('./commands/host/pull.js'),
  },
  {
    name: 'status',
    summary: 'what this host uses, who proved it, and what is wrong',
    load: () => import('./commands/host/status.js'),
  },
  {
    name: 'health',
    summary: 'one line and an exit code for monitoring',
    load: () => import('./commands/host/health.js'),
  },
  {
    name: 'doctor',
    summary: 'what is wrong with this host, and what to do about it',
    load: () => import('./commands/host/doctor.js'),
  },
  {
    name: 'history',
    summary: 'what the cycles of this host did',
    load: () => import('./commands/host/history.js'),
  },
  {
    name: 'diff',
    summary: 'what two generations differ in, or what the server would change',
    load: () => import('./commands/host/diff.js'),
  },
  {
    name: 'rollback',
    summary: 'go back to an older generation and hold what is left',
    load: () => import('./commands/host/rollback.js'),
  },
  {
    name: 'pause',
    summary: 'activate nothing until an end, or until writ resume',
    load: () => import('./commands/host/pause.js'),
  },
  {
    name: 'resume',
    summary: 'end a pause, holds and a block',
    load: () => import('./commands/host/resume.js'),
  },
  {
    name: 'verify',
    summary: 'hold the policy on disk to what was signed, and mend it',
    load: () => import('./commands/host/verify.js'),
  },
  {
    name: 'reload',
    summary: 'let the agent read its configuration again, and say what came of it',
    load: () => import('./commands/host/reload.js'),
  },
  {
    name: 'config show',
    summary: 'the configuration as the agent reads it',
    load: () => import('./commands/host/config-show.js'),
  },
];

const signalExitCode = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * @param argv arguments after the program's name
 * @returns the exit code; what was written may not be out yet
 */
export async function runWrit(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, env } = surroundings;
  const version = readVersion();
  let invocation: Invocation;
  try {
    invocation = await parseCommandLine(argv, commands, { version, env, stdout });
  } catch (error) {
    return rendererForUsage(argv, surroundings).error('usage.error', toWritError(error));
  }
  if (invocation.kind === 'text') {
    createRenderer(plainFlags, surroundings).raw(invocation.text);
    return 0;
  }
  return runCommand(invocation, { surroundings, env, version });
}

async function runCommand(
  { definition, args, flags, name: command }: Invocation & { kind: 'command' },
  given: Pick<CommandContext, 'surroundings' | 'env' | 'version'>,
): Promise<number> {
  const { stdin, stderr, directory } = given.surroundings;
  const renderer = createRenderer(renderOptions(flags), given.surroundings);
  const type = `${command.replace(' ', '-')}.result`;
  const signal = listenForSignals(definition.onSignal, { renderer, type, surroundings: given.surroundings });
  const canAsk = flags.input && stdin.isTTY === true && stderr.isTTY === true;
  const reporter = renderer.reporter(systemClock);
  try {
    const { answer: announce, redraw } = renderer;
    const at = (path: string): string => (directory === undefined ? path : resolve(directory, path));
    const clock = systemClock;
    const context = { ...given, reporter, announce, redraw, clock, command, at, signal, canAsk };
    const answer = await definition.run(args, flags, context);
    renderer.answer(answer);
    return answer.exitCode;
  } catch (error) {
    const failure = deniedOr(toWritError(error));
    const exitCode = failure.code === 'INTERRUPTED' ? undefined : definition.failureExitCode;
    return renderer.error(type, failure, exitCode);
  }
}

/** The first signal asks a draining command to end; any other ends the process at once. */
function listenForSignals(
  onSignal: 'end' | 'drain',
  { renderer, type, surroundings }: { renderer: Renderer; type: string; surroundings: Surroundings },
): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    surroundings.on(name, () => {
      const isFirst = !controller.signal.aborted;
      // Who listens ends a program that it started: it must not go on, and sign, without us.
      controller.abort();
      if (onSignal === 'drain' && isFirst) return;
      const error = new WritError('INTERRUPTED', `ended by ${name}`);
      surroundings.exit(renderer.error(type, error, signalExitCode[name]));
    });
  }
  return controller.signal;
}

const plainFlags = { json: false, quiet: false, verbose: false, color: 'auto' } as const;

function renderOptions(flags: CommonFlags): Parameters<typeof createRenderer>[0] {
  return {
    json: flags.json === true,
    quiet: flags.quiet === true,
    verbose: flags.verbose === true,
    color: flags.color,
  };
}

/** What was typed was not understood, so --json is looked for by hand: a script gets JSON here too. */
function rendererForUsage(argv: readonly string[], surroundings: Surroundings): Renderer {
  const end = argv.indexOf('--');
  const flags = end === -1 ? argv : argv.slice(0, end);
  return createRenderer({ ...plainFlags, json: flags.includes('--json') }, surroundings);
}

function readVersion(): string {
  const path = join(import.meta.dirname, '..', '..', '..', 'package.json');
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string };
  return version;
}
