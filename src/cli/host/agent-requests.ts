// Sends the requests of commands to the agent: the caller, the socket, the timeouts, and the standalone run when no agent runs.
// Contains no text of a single command.
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
import { agentUnit, chooseServiceCommands, type ServiceCommands } from '../../core/status/agent-service.js';
import { askAgent } from '../../platform/net/control-client.js';
import { findUnit } from '../../platform/process/find-unit.js';
import type { Answer, CommandContext } from '../console/command.js';
import { type FlagValues, preset } from '../console/flags.js';

/** The same flag and variable for all commands of a host. */
export const configFlag = {
  config: preset('--config <file>', 'configuration of the agent', defaultConfigPath).env('WRIT_CONFIG'),
};

export type ConfigFlags = FlagValues<typeof configFlag>;

/** @returns the answer; its next and undo commands name the same configuration, so that they can be pasted */
export function withConfig<T extends Pick<Answer, 'next' | 'undo'>>(answer: T, { config }: ConfigFlags): T {
  const paste = (line: string | undefined): string | undefined => line && pasteable(line, config);
  return { ...answer, next: paste(answer.next), undo: paste(answer.undo) };
}

/** @returns a `writ` command with the flag of this configuration; other texts unchanged */
function pasteable(text: string, configPath: string): string {
  const isWritCommand = /^(?:sudo )?writ [a-z]/.test(text) && configPath !== defaultConfigPath;
  return isWritCommand ? `${text} --config ${configPath}` : text;
}

/** @returns the commands that start the agent of this host: those of its systemd unit if it is installed */
export function agentService({ surroundings }: CommandContext): ServiceCommands {
  return chooseServiceCommands(findUnit(agentUnit, surroundings.unitFolders));
}

/** A check or a loader may take an hour, in which the agent sends nothing. */
const cycleTimeoutMs = 2 * 3_600_000;
const queryTimeoutMs = 10_000;
/** The agent sends a status at least every ten seconds. */
const watchTimeoutMs = 60_000;

export interface AgentRequest {
  readonly request: ControlRequest;
  readonly flags: ConfigFlags;
  readonly context: CommandContext;
  /** Called with every message when it arrives, also with the last one. */
  readonly onMessage?: (message: ControlAnswer) => void;
}

/**
 * Sends the request on the control socket. If this user has no permission there, `status` and `watch` use the socket for readers.
 * @returns the last message of the response
 * @throws WritError AGENT_UNREACHABLE (fact reason: `not-running`, `denied`, ...), PATH_UNSAFE if another user could have made
 *   the socket, MESSAGE_MALFORMED, INTERRUPTED, CONFIG_UNREADABLE, CONFIG_SYNTAX, and the code of an error that the agent sends
 */
export async function sendRequest(options: AgentRequest): Promise<ControlAnswer> {
  const places = agentPlaces(options.context.at(options.flags.config));
  try {
    return await sendToSocket(places.socket, places.state, options);
  } catch (error) {
    const { type } = options.request;
    if (!isConnectionDenied(error) || (type !== 'status' && type !== 'watch')) throw error;
    const { readSocket } = hostPaths(places);
    if (!existsSync(readSocket)) throw error;
    return sendToSocket(readSocket, places.state, options).catch((readError: unknown) => {
      throw isConnectionDenied(readError) ? error : readError;
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
  const messages = askAgent({
    socketPath,
    state,
    request,
    version,
    clock,
    signal,
    silenceMs: responseTimeoutMs(request.type),
    commandLine: pasteable(`writ ${context.command}`, flags.config),
    service: { ...service, start: pasteable(service.start, flags.config) },
    onOtherVersion: (agentVersion) =>
      reporter.warn(`the agent has version ${agentVersion}, this command ${version}; restart it`),
  });
  let last: ControlAnswer | undefined;
  for await (const message of messages) {
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

/** True when no process listens. Only then a command may run standalone, if it gets the lock. */
export function isAgentNotRunning(error: unknown): boolean {
  return isWritError(error) && error.code === 'AGENT_UNREACHABLE' && error.facts['reason'] === 'not-running';
}

/** True for AGENT_UNREACHABLE with the fact reason `denied`: this user may not connect. Whether an agent runs is unknown. */
export function isConnectionDenied(error: unknown): boolean {
  return isWritError(error) && error.code === 'AGENT_UNREACHABLE' && error.facts['reason'] === 'denied';
}

/**
 * @returns not-listening if no agent runs, denied if this user may not connect; undefined for any other error, for example of an
 *   agent that hangs
 */
export function connectFailureReason(error: unknown): 'denied' | 'not-listening' | undefined {
  if (isAgentNotRunning(error)) return 'not-listening';
  return isConnectionDenied(error) ? 'denied' : undefined;
}

/**
 * @returns `sudo writ COMMAND`, with --config of another configuration than the default: root can read files that this user
 *   cannot
 */
export function sudoCommand({ config }: ConfigFlags, { command }: CommandContext): string {
  return `sudo ${pasteable(`writ ${command}`, config)}`;
}

/** @returns the options of a standalone run, as the modules of the agent expect them */
export function standaloneOptions(
  { config }: ConfigFlags,
  { at, version, signal, env, clock }: CommandContext,
) {
  return { configPath: at(config), version, signal, by: callerName(env), clock };
}

/** The time in which an agent that holds the lock opens its socket or ends. */
const agentStartTimeoutMs = 60_000;
const retryDelayMs = 500;

/**
 * Sends the request to the running agent. Runs standalone only when no agent runs. An agent that starts or ends holds the lock and
 * has no socket: the request is retried for a minute.
 * @param parse returns the result in the last message; throws if the message is not a response to the request
 * @param runStandalone undefined for a request that only a running agent can do
 * @throws WritError AGENT_UNREACHABLE if no agent runs and runStandalone is undefined; LOCK_HELD if an agent holds the lock after
 *   the minute; INTERRUPTED; what sendRequest, parse and runStandalone throw
 */
export async function requestOrRun<T>(
  agentRequest: AgentRequest,
  parse: (last: ControlAnswer) => T,
  runStandalone?: (options: ReturnType<typeof standaloneOptions>) => Promise<T>,
): Promise<T> {
  const { context, flags } = agentRequest;
  const endMs = context.clock.monotonicMs() + agentStartTimeoutMs;
  for (let retries = 0; ; retries += 1) {
    if (retries > 0) await waitForAgent(context, retries);
    try {
      return parse(await sendRequest(agentRequest));
    } catch (error) {
      if (runStandalone === undefined || !isAgentNotRunning(error)) throw error;
    }
    try {
      return await runStandalone(standaloneOptions(flags, context));
    } catch (error) {
      if (!isLockedByAgent(error) || context.clock.monotonicMs() >= endMs) throw error;
    }
  }
}

/** @throws WritError INTERRUPTED after a signal; no request was sent, so no work continues in an agent */
async function waitForAgent({ clock, signal, reporter }: CommandContext, retries: number): Promise<void> {
  if (retries === 1) reporter.note('an agent starts or ends: waiting for it');
  await clock.sleep(retryDelayMs, signal);
  if (!signal.aborted) return;
  const message = 'the command was interrupted while it waited for the agent';
  throw new WritError('INTERRUPTED', message, { facts: { reason: 'waiting' } });
}

/** True when a signal ended the wait for the response to a request that was sent. */
export function isInterruptedRequest(error: unknown): boolean {
  return isWritError(error) && error.code === 'INTERRUPTED' && error.facts['reason'] !== 'waiting';
}

/** True when an agent holds the lock of this host, whether or not its socket answers. */
export function isLockedByAgent(error: unknown): boolean {
  return isWritError(error) && error.code === 'LOCK_HELD' && error.facts['what'] === 'agent';
}

/** @returns a parser for a request with one type of response. The parser throws WritError MESSAGE_MALFORMED */
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

/**
 * @returns the user of the command, under sudo SUDO_USER: 1 to 64 characters of A-Z a-z 0-9 . _ @ -, others become `_`; `uid-N`
 *   for a user without an account. Only for the history: it must not grant a permission.
 */
export function callerName(env: CommandContext['env']): string {
  const name = env['SUDO_USER'] ?? accountName();
  return name.replaceAll(/[^\w.@-]/g, '_').slice(0, 64) || 'unknown';
}

function accountName(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // A container may run under a user id without an account.
    if (!isSystemError(error)) throw error;
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
