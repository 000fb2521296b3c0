// The command line as a function: the table of commands, signals, and the one place that turns errors into exit codes.
// Imports render only; the parser is imported when there is something to parse, and every command when it was typed.
// Takes the process from its caller.
import { resolve } from 'node:path';
import { toWritError, WritError } from '../core/errors.js';
import { writVersion } from '../core/version.js';
import { systemClock } from '../platform/time/clock.js';
import type { CommandContext, CommandEntry, Surroundings } from './console/command.js';
import { deniedOr } from './console/denied.js';
import { exitCodeOfLostAnswer, lostAnswerWarning, onlyAnswers } from './console/lost-answer.js';
import type { Invocation } from './console/program.js';
import { createRenderer, type Renderer } from './console/render.js';

/** What the help says of each command, in its order. */
const summaries = {
  init: 'create a signed repository and its keys',
  publish: 'sign a directory as the next release of a bundle',
  withdraw: 'withdraw a bad release: its channel gets an older one',
  promote: 'point a channel at the release of another channel',
  delegate: 'let a team sign its own bundles',
  refresh: 're-sign snapshot and timestamp of a repository',
  inspect: 'show and verify what an archive or a repository contains',
  'repo status': 'show versions, keys and days to expiry of a repository',
  'key new': 'create a signing key and its public file',
  'key list': 'list the keys of a directory and their roles',
  'key show': 'show what a key file or a public key is',
  'key passphrase': 'change the passphrase of a key',
  'root rotate': 'propose the next root: keys, thresholds, lifetimes, or only a new expiry',
  'root add-key': 'propose a root with an additional key',
  'root remove-key': 'propose a root without a key',
  'root threshold': 'propose a root that needs more or fewer signatures',
  sign: 'sign a root proposal, or re-sign a role',
  'root commit': 'make a fully signed proposal the root of the repository',
  'repo log': 'show who published, withdrew, promoted and signed what, and when',
  'repo check': 'verify every root, role and archive of a repository',
  'repo gc': 'remove files that no kept version of a repository refers to',
  'repo export': 'copy the published state, for hosts without a network',
  serve: 'serve a repository over HTTP or HTTPS',
  'fleet serve': 'collect reports of hosts, and answer who runs what',
  'fleet token': 'create, list or revoke the tokens of a fleet',
  'fleet status': 'show one sentence about all hosts, with an exit code for monitoring',
  'fleet hosts': 'list the hosts that match a filter',
  'fleet host': 'show the last report of a host; approve or retire a host',
  'fleet history': 'list which hosts ran or refused a release, and from when to when',
  'fleet wait': 'wait until a share of the hosts confirmed a release',
  'fleet log': 'show who changed what in the fleet',
  agent: 'run the agent of this host',
  pull: 'activate the newest policy now, and report the outcome',
  status: 'show what this host uses, who proved it, and what is wrong',
  health: 'print one line, with an exit code for monitoring',
  doctor: 'find out what is wrong with this host, and what to do',
  history: 'show what the cycles of this host did',
  diff: 'show how two generations differ, or what the server would change',
  rollback: 'activate an older generation and hold the current release',
  pause: 'activate nothing until a given time, or until writ resume',
  resume: 'end a pause, all holds and a block',
  refusals: 'list the releases that this host refused, or forget them',
  verify: 'verify the policy on disk against what was signed, and repair it',
  reload: 'make the agent read its configuration again, and report the outcome',
  'config show': 'show the configuration as the agent reads it',
  'config check': 'find mistakes in a configuration before the first release does',
  check: 'run the checks of a host on a directory before it is published',
} as const;

/** Each is imported when it was typed: `writ status` must not load what signs. */
const modules: Readonly<Record<keyof typeof summaries, CommandEntry['load']>> = {
  init: () => import('./commands/root/init.js'),
  publish: () => import('./commands/release/publish.js'),
  withdraw: () => import('./commands/release/withdraw.js'),
  promote: () => import('./commands/release/promote.js'),
  delegate: () => import('./commands/release/delegate.js'),
  refresh: () => import('./commands/release/refresh.js'),
  inspect: () => import('./commands/release/inspect.js'),
  'repo status': () => import('./commands/repo/repo-status.js'),
  'key new': () => import('./commands/keys/key-new.js'),
  'key list': () => import('./commands/keys/key-list.js'),
  'key show': () => import('./commands/keys/key-show.js'),
  'key passphrase': () => import('./commands/keys/key-passphrase.js'),
  'root rotate': () => import('./commands/root/root-rotate.js'),
  'root add-key': () => import('./commands/root/root-add-key.js'),
  'root remove-key': () => import('./commands/root/root-remove-key.js'),
  'root threshold': () => import('./commands/root/root-threshold.js'),
  sign: () => import('./commands/root/sign.js'),
  'root commit': () => import('./commands/root/root-commit.js'),
  'repo log': () => import('./commands/repo/repo-log.js'),
  'repo check': () => import('./commands/repo/repo-check.js'),
  'repo gc': () => import('./commands/repo/repo-gc.js'),
  'repo export': () => import('./commands/repo/repo-export.js'),
  serve: () => import('./commands/repo/serve.js'),
  'fleet serve': () => import('./commands/fleet/fleet-serve.js'),
  'fleet token': () => import('./commands/fleet/fleet-token.js'),
  'fleet status': () => import('./commands/fleet/fleet-status.js'),
  'fleet hosts': () => import('./commands/fleet/fleet-hosts.js'),
  'fleet host': () => import('./commands/fleet/fleet-host.js'),
  'fleet history': () => import('./commands/fleet/fleet-history.js'),
  'fleet wait': () => import('./commands/fleet/fleet-wait.js'),
  'fleet log': () => import('./commands/fleet/fleet-log.js'),
  agent: () => import('./commands/host/agent.js'),
  pull: () => import('./commands/host/pull.js'),
  status: () => import('./commands/host/status.js'),
  health: () => import('./commands/host/health.js'),
  doctor: () => import('./commands/host/doctor.js'),
  history: () => import('./commands/host/history.js'),
  diff: () => import('./commands/host/diff.js'),
  rollback: () => import('./commands/host/rollback.js'),
  pause: () => import('./commands/host/pause.js'),
  resume: () => import('./commands/host/resume.js'),
  refusals: () => import('./commands/host/refusals.js'),
  verify: () => import('./commands/host/verify.js'),
  reload: () => import('./commands/host/reload.js'),
  check: () => import('./commands/host/check.js'),
  'config show': () => import('./commands/host/config-show.js'),
  'config check': () => import('./commands/host/config-check.js'),
};

/** Headings of the help; what stands under none is the host's. */
const groups: Readonly<Record<string, readonly string[]>> = {
  'Repository:': [
    'init',
    'publish',
    'withdraw',
    'promote',
    'delegate',
    'refresh',
    'inspect',
    'repo',
    'serve',
  ],
  'Keys:': ['key', 'root', 'sign'],
  'Fleet:': ['fleet'],
};

function groupOf(name: string): string {
  const [first = ''] = name.split(' ');
  return Object.keys(groups).find((heading) => groups[heading]?.includes(first)) ?? 'Host:';
}

/** The table of commands, in the order of the help; man pages and completion are made of it. */
export const commands: readonly CommandEntry[] = Object.entries(modules).map(([name, load]) => {
  return { name, summary: summaries[name as keyof typeof summaries], group: groupOf(name), load };
});

/** A server only serves, and signs what was signed before: its mounts must not end it after an upgrade. */
function isPublisher(command: string): boolean {
  return groupOf(command) !== 'Host:' && groupOf(command) !== 'Fleet:' && command !== 'serve';
}

const signalExitCode = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * @param argv arguments after the program's name
 * @returns the exit code; what was written may not be out yet
 */
export async function runWrit(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, env } = surroundings;
  let invocation: Invocation;
  try {
    if (isVersionAsked(argv)) return showText(`${writVersion}\n`, surroundings);
    const { parseCommandLine } = await import('./console/program.js');
    invocation = await parseCommandLine(argv, commands, { version: writVersion, env, stdout });
  } catch (error) {
    return rendererForUsage(argv, surroundings).error(toWritError(error));
  }
  if (invocation.kind === 'text') return showText(invocation.text, surroundings);
  return runCommand(invocation, surroundings);
}

/** What is installed is asked by scripts, often: the parser would say the same, and takes longer than the rest. */
function isVersionAsked(argv: readonly string[]): boolean {
  return argv.length === 1 && ['--version', '-V', 'version'].includes(argv[0] ?? '');
}

async function showText(text: string, surroundings: Surroundings): Promise<number> {
  const renderer = createRenderer({ color: 'auto' }, surroundings, 'help.result');
  renderer.raw(text);
  const { lines } = await renderer.lostAnswers();
  return lines === 0 ? 0 : 1;
}

async function runCommand(
  { definition, args, flags, name: command }: Invocation & { kind: 'command' },
  surroundings: Surroundings,
): Promise<number> {
  const { stdin, stderr, env, directory, clock = systemClock } = surroundings;
  const type = `${command.replace(' ', '-')}.result`;
  const renderer = createRenderer(flags, surroundings, type);
  const isOnlyAnswer = onlyAnswers(definition, args, flags);
  const { signal, exitCodeOf, stop } = listenForSignals(definition.onSignal, renderer, surroundings);
  // An answer that goes on, as `status --watch`, has no reader any more.
  if (isOnlyAnswer) renderer.answerLost.addEventListener('abort', stop);
  const canAsk = flags.input === true && stdin.isTTY === true && stderr.isTTY === true;
  const reporter = renderer.reporter(clock);
  const startedMs = clock.monotonicMs();
  try {
    const { answer: announce, redraw } = renderer;
    const at: CommandContext['at'] = (path) => {
      const whole = directory === undefined || path === undefined ? path : resolve(directory, path);
      return whole as typeof path;
    };
    const say = { reporter, announce, redraw };
    const own = { command, version: writVersion, clock };
    if (isPublisher(command)) {
      const { requireOwnPlaces } = await import('./repository/own-places.js');
      requireOwnPlaces({ ...flags }, at);
    }
    const answer = await definition.run(args, flags, {
      ...say,
      ...own,
      surroundings,
      env,
      at,
      signal,
      canAsk,
    });
    if (flags.verbose === true && definition.onSignal === undefined)
      reporter.finish('total', `${((clock.monotonicMs() - startedMs) / 1000).toFixed(1)} s`);
    const exitCode = exitCodeOf(answer.exitCode ?? 0);
    renderer.answer({ ...answer, exitCode }, definition.quiet);
    const lost = await renderer.lostAnswers();
    if (lost.lines === 0) return exitCode;
    for (const warning of lostAnswerWarning(lost)) reporter.warn(warning);
    const { failureExitCode } = definition;
    return exitCodeOfLostAnswer({ answer, exitCode, isOnlyAnswer, failureExitCode });
  } catch (error) {
    const { describePathError } = await import('./console/path-error.js');
    const failure = deniedOr(toWritError(describePathError(error)));
    const exitCode = failure.code === 'INTERRUPTED' ? exitCodeOf(130) : definition.failureExitCode;
    return renderer.error(failure, exitCode);
  }
}

/**
 * The first signal asks a draining command to end; any other ends the process at once.
 * @returns exitCodeOf: 130, which such a command answers when it was interrupted, as the code of the signal that did it;
 *   stop: asks it to end without a signal
 */
function listenForSignals(
  onSignal: 'drain' | undefined,
  renderer: Renderer,
  surroundings: Surroundings,
): { readonly signal: AbortSignal; exitCodeOf(exitCode: number): number; stop(): void } {
  const controller = new AbortController();
  let first: keyof typeof signalExitCode = 'SIGINT';
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    surroundings.on(name, () => {
      const isFirst = !controller.signal.aborted;
      if (isFirst) first = name;
      // Who listens ends a program that it started: it must not go on, and sign, without us.
      controller.abort();
      if (onSignal === 'drain' && isFirst) return;
      const error = new WritError('INTERRUPTED', `ended by ${name}`);
      surroundings.exit(renderer.error(error, signalExitCode[name]));
    });
  }
  const exitCodeOf = (code: number): number => (code === 130 ? signalExitCode[first] : code);
  return { signal: controller.signal, exitCodeOf, stop: () => controller.abort() };
}

/** What was typed was not understood, so --json is looked for by hand: a script gets JSON here too. */
function rendererForUsage(argv: readonly string[], surroundings: Surroundings): Renderer {
  const end = argv.indexOf('--');
  const flags = end === -1 ? argv : argv.slice(0, end);
  return createRenderer({ json: flags.includes('--json'), color: 'auto' }, surroundings, 'usage.error');
}
