// How commands talk to the agent: who asks, which socket, how long to wait, and how a command does without it.
// Owns no words of any command.
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { agentPlaces, defaultConfigPath } from '../../agent/config/config-file.js';
import { hostPaths } from '../../agent/state/paths.js';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import {
  type ControlAnswer,
  type ControlRequest,
  requireAnswer,
} from '../../core/protocol/control-protocol.js';
import { agentUnit, type ServiceLines, serviceLines } from '../../core/status/agent-service.js';
import { askAgent } from '../../platform/net/control-client.js';
import { findUnit } from '../../platform/process/find-unit.js';
import type { Answer, CommandContext } from '../console/command.js';
import { type FlagValues, preset } from '../console/flags.js';

/** One variable for all commands of a host. */
export const configFlag = {
  config: preset('--config <file>', 'configuration of the agent', defaultConfigPath).env('WRIT_CONFIG'),
};

export type ConfigFlags = FlagValues<typeof configFlag>;

/** @returns the answer with a `Next:` line that names the same configuration, so that it can be pasted */
export function withConfig<T extends Pick<Answer, 'next' | 'undo'>>(answer: T, { config }: ConfigFlags): T {
  const paste = (line: string | undefined): string | undefined => line && pasteable(line, config);
  return { ...answer, next: paste(answer.next), undo: paste(answer.undo) };
}

/** @returns a command of ours with the configuration that was asked about; other texts as they are */
function pasteable(text: string, configPath: string): string {
  const isOurs = /^(?:sudo )?writ [a-z]/.test(text) && configPath !== defaultConfigPath;
  return isOurs ? `${text} --config ${configPath}` : text;
}

/** @returns what starts the agent of this host: its unit, where one is installed */
export function agentService({ surroundings }: CommandContext): ServiceLines {
  return serviceLines(findUnit(agentUnit, surroundings.unitFolders));
}

/** A check or a loader may take an hour; the agent says nothing in between. */
const cycleTimeoutMs = 2 * 3_600_000;
const queryTimeoutMs = 10_000;
/** The agent sends a status every ten seconds at least. */
const watchTimeoutMs = 60_000;

export interface AgentRequest {
  readonly request: ControlRequest;
  readonly flags: ConfigFlags;
  readonly context: CommandContext;
  /** Every message as it comes, the last one too. */
  readonly onMessage?: (message: ControlAnswer) => void;
}

/**
 * Asks on the control socket; who may not, and only wants to look, on the socket of those who may.
 * @returns the last message of the answer
 * @throws WritError as askAgent does (PATH_UNSAFE where its socket is not to be believed); CONFIG_UNREADABLE, CONFIG_SYNTAX
 */
export async function sendRequest(question: AgentRequest): Promise<ControlAnswer> {
  const places = agentPlaces(question.context.at(question.flags.config));
  try {
    return await sendToSocket(places.socket, places.state, question);
  } catch (error) {
    const { type } = question.request;
    if (!isConnectionDenied(error) || (type !== 'status' && type !== 'watch')) throw error;
    const { readSocket } = hostPaths(places);
    if (!existsSync(readSocket)) throw error;
    return sendToSocket(readSocket, places.state, question).catch((second: unknown) => {
      throw isConnectionDenied(second) ? error : second;
    });
  }
}

async function sendToSocket(
  socketPath: string,
  state: string,
  { request, flags, context, onMessage }: AgentRequest,
): Promise<ControlAnswer> {
  const { clock, version, signal, reporter } = context;
  const service = agentService(context);
  const answers = askAgent({
    socketPath,
    state,
    request,
    version,
    clock,
    signal,
    silenceMs: responseTimeoutMs(request.type),
    commandLine: pasteable(`writ ${context.command}`, flags.config),
    service: { ...service, start: pasteable(service.start, flags.config) },
    onOtherVersion: (other) =>
      reporter.warn(`the agent has version ${other}, this command ${version}; restart it`),
  });
  let last: ControlAnswer | undefined;
  for await (const message of answers) {
    requireAnswer(message);
    onMessage?.(message);
    last = message;
  }
  if (last === undefined) throw new WritError('INTERNAL', 'the agent answered nothing');
  return last;
}

function responseTimeoutMs(type: ControlRequest['type']): number {
  if (type === 'watch') return watchTimeoutMs;
  return ['pull', 'reload', 'rollback', 'verify'].includes(type) ? cycleTimeoutMs : queryTimeoutMs;
}

/** True when nobody listens: then, and only then, a command may act alone, if it gets the lock. */
export function isAgentNotRunning(error: unknown): boolean {
  return isWritError(error) && error.code === 'AGENT_UNREACHABLE' && error.facts['reason'] === 'not-running';
}

/** True when this user may not connect: whether an agent runs there is not known. */
export function isConnectionDenied(error: unknown): boolean {
  return isWritError(error) && error.code === 'AGENT_UNREACHABLE' && error.facts['reason'] === 'denied';
}

/** @returns what kept the agent from being heard; undefined for whatever else went wrong, as an agent that hangs */
export function connectFailureReason(error: unknown): 'denied' | 'nobody' | undefined {
  if (isAgentNotRunning(error)) return 'nobody';
  return isConnectionDenied(error) ? 'denied' : undefined;
}

/** @returns the same command for somebody who may read what this user may not */
export function sudoCommand({ config }: ConfigFlags, { command }: CommandContext): string {
  return `sudo ${pasteable(`writ ${command}`, config)}`;
}

/** What the agent's own code needs to know of a command that does without an agent. */
export function standaloneOptions(
  { config }: ConfigFlags,
  { at, version, signal, env, clock }: CommandContext,
) {
  return { configPath: at(config), version, signal, by: callerName(env), nowMs: clock.nowMs() };
}

/** How long an agent that has the lock may take until its socket is open, or until it has ended. */
const agentStartTimeoutMs = 60_000;
const retryDelayMs = 500;

/**
 * Asks the running agent; when none runs, and only then, acts alone. One that starts or ends has the lock and no socket:
 * it is asked again, for a minute.
 * @param take what is wanted of the last message; throws for one that is no answer
 * @param alone left out for what only a running agent can do
 */
export async function requestOrRun<T>(
  question: AgentRequest,
  take: (last: ControlAnswer) => T,
  alone?: (options: ReturnType<typeof standaloneOptions>) => Promise<T>,
): Promise<T> {
  const { context, flags } = question;
  const endMs = context.clock.monotonicMs() + agentStartTimeoutMs;
  for (let tries = 0; ; tries += 1) {
    if (tries > 0) await waitForAgent(context, tries);
    try {
      return take(await sendRequest(question));
    } catch (error) {
      if (alone === undefined || !isAgentNotRunning(error)) throw error;
    }
    try {
      return await alone(standaloneOptions(flags, context));
    } catch (error) {
      if (!isLockedByAgent(error) || context.clock.monotonicMs() >= endMs) throw error;
    }
  }
}

/** @throws WritError INTERRUPTED: nothing was asked of anybody, so nothing goes on either */
async function waitForAgent({ clock, signal, reporter }: CommandContext, tries: number): Promise<void> {
  if (tries === 1) reporter.note('an agent starts or ends: waiting for it');
  await clock.sleep(retryDelayMs, signal);
  if (!signal.aborted) return;
  const message = 'the command was interrupted while it waited for the agent';
  throw new WritError('INTERRUPTED', message, { facts: { reason: 'waiting' } });
}

/** True when a signal ended the wait for an agent that was asked. */
export function isInterruptedRequest(error: unknown): boolean {
  return isWritError(error) && error.code === 'INTERRUPTED' && error.facts['reason'] !== 'waiting';
}

/** True when an agent has the lock of this host, whether or not it can be asked. */
export function isLockedByAgent(error: unknown): boolean {
  return isWritError(error) && error.code === 'LOCK_HELD' && error.facts['what'] === 'agent';
}

/** For a request that has one kind of answer. @throws (when it takes) WritError MESSAGE_MALFORMED */
export function expectResponse<Type extends ControlAnswer['type']>(type: Type) {
  return (last: ControlAnswer): Extract<ControlAnswer, { type: Type }> => {
    if (hasType(last, type)) return last;
    const request = type.replace('.result', '');
    throw new WritError('MESSAGE_MALFORMED', `the agent answered ${last.type} to ${request}`);
  };
}

function hasType<Type extends ControlAnswer['type']>(
  message: ControlAnswer,
  type: Type,
): message is Extract<ControlAnswer, { type: Type }> {
  return message.type === type;
}

/** The person behind the command, also behind sudo; for the history, never for a right. */
export function callerName(env: CommandContext['env']): string {
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
