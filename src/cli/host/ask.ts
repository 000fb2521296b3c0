// How commands talk to the agent: who asks, which socket, how long to wait, and what to do when no agent runs.
// Owns no words of any command.
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { agentPlaces } from '../../agent/config/agent-places.js';
import { defaultConfigPath } from '../../agent/config/config-file.js';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import type { ControlAnswer, ControlRequest } from '../../core/protocol/control-protocol.js';
import { askAgent } from '../../platform/net/control-client.js';
import type { CommandContext } from '../console/command.js';

export interface ConfigFlags {
  readonly config: string;
}

/** Adds --config, which WRIT_CONFIG gives too. */
export function addConfigFlag(command: Command): Command {
  return command.option('--config <file>', 'configuration of the agent', defaultConfigPath);
}

/** @returns the answer with a `Next:` line that names the same configuration, so that it can be pasted */
export function withConfig<T extends { readonly next?: string }>(answer: T, { config }: ConfigFlags): T {
  return answer.next === undefined ? answer : { ...answer, next: pasteable(answer.next, config) };
}

/** @returns a command of ours with the configuration that was asked about; other texts as they are */
function pasteable(text: string, configPath: string): string {
  const isOurs = /^(?:sudo )?writ [a-z]/.test(text) && configPath !== defaultConfigPath;
  return isOurs ? `${text} --config ${configPath}` : text;
}

/** A check or a loader may take an hour; the agent says nothing in between. */
const cycleSilenceMs = 2 * 3_600_000;
const answerSilenceMs = 10_000;
/** The agent sends a status every ten seconds at least. */
const watchSilenceMs = 60_000;

export interface Question {
  readonly request: ControlRequest;
  readonly configPath: string;
  readonly context: CommandContext;
  /** Every message as it comes, the last one too. */
  readonly onMessage?: (message: ControlAnswer) => void;
}

/**
 * @returns the last message of the answer
 * @throws WritError as askAgent does; CONFIG_UNREADABLE, CONFIG_SYNTAX
 */
export async function ask({ request, configPath, context, onMessage }: Question): Promise<ControlAnswer> {
  const { clock, version, signal, reporter } = context;
  const answers = askAgent({
    socketPath: agentPlaces(configPath).socket,
    request,
    version,
    clock,
    signal,
    silenceMs: silenceOf(request.type),
    commandLine: pasteable(`writ ${context.command}`, configPath),
    onOtherVersion: (other) =>
      reporter.warn(`the agent has version ${other}, this command ${version}; restart it`),
  });
  let last: ControlAnswer | undefined;
  for await (const message of answers) {
    onMessage?.(message);
    last = message;
  }
  if (last === undefined) throw new WritError('INTERNAL', 'the agent answered nothing');
  return last;
}

function silenceOf(type: ControlRequest['type']): number {
  if (type === 'watch') return watchSilenceMs;
  return ['pull', 'reload', 'rollback', 'verify'].includes(type) ? cycleSilenceMs : answerSilenceMs;
}

/** True when no agent runs: then, and only then, a command may act alone. */
export function isNotRunning(error: unknown): boolean {
  return isWritError(error) && error.code === 'AGENT_UNREACHABLE' && error.facts['reason'] === 'not-running';
}

/** The person behind the command, also behind sudo; for the history, never for a right. */
export function whoAsks(env: CommandContext['env']): string {
  const name = env['SUDO_USER'] ?? accountName();
  return name.replaceAll(/[^\w.@-]/g, '_').slice(0, 64) || 'unknown';
}

function accountName(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // A container may run under a number that no account has.
    if (!isSystemError(error)) throw error;
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
