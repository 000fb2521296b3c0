// Reads the status of a host for commands that change nothing: from the agent, else from the state directory, else from
// status.json, which an agent writes every minute. The choice between these sources is in status-source-rules.
import { agentPlaces } from '../../agent/config/config-file.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { StatusReport } from '../../core/status/status.js';
import type { CommandContext } from '../console/command.js';
import { roughly } from '../show/show-text.js';
import {
  type ConfigFlags,
  connectFailureReason,
  expectResponse,
  sendRequest,
  standaloneOptions,
  sudoCommand,
} from './agent-requests.js';
import { agentModules } from './lazy-agent-modules.js';
import { chooseStatusSource, type StatusEvidence } from './status-source-rules.js';

export type KnownStatus =
  | { readonly kind: 'agent' | 'disk'; readonly report: StatusReport }
  /** `status.json`, with its age. `socket`: the reason for this source, as StatusEvidence has it. */
  | {
      readonly kind: 'file';
      readonly report: StatusReport;
      readonly ageMs: number;
      readonly socket: StatusEvidence['socket'];
    };

/** No source is good enough. `report`: from the ledger, after an agent ended without a final status; else undefined. */
export interface UnknownStatus {
  readonly kind: 'unknown';
  readonly why: WritError;
  readonly report?: StatusReport;
}

export type HostStatus = KnownStatus | UnknownStatus;

/**
 * @returns kind `agent`, `disk` or `file` with a report; kind `unknown` with the reason `why` if no source is good enough
 * @throws WritError of an agent that runs and does not answer; CONFIG_*; STATE_DAMAGED
 */
export async function readHostStatus(flags: ConfigFlags, context: CommandContext): Promise<HostStatus> {
  try {
    const response = await sendRequest({ request: { type: 'status' }, flags, context });
    return { kind: 'agent', report: expectResponse('status.result')(response) };
  } catch (error) {
    if (isConfigDenied(error)) return { kind: 'unknown', why: error };
    const socket = connectFailureReason(error);
    if (socket === undefined || !isWritError(error)) throw error;
    const { state } = agentPlaces(context.at(flags.config));
    const failed = { error, socket, state, sudo: sudoCommand(flags, context) };
    return readStatusWithoutAgent(failed, standaloneOptions(flags, context));
  }
}

/**
 * For commands that show a partial status: an unknown status with a report gets kind `disk`, and its reason is one of the
 * problems.
 * @throws WritError of an agent that runs and does not answer; CONFIG_*; STATE_DAMAGED; the reason of an unknown status without a
 *   report
 */
export async function readKnownStatus(flags: ConfigFlags, context: CommandContext): Promise<KnownStatus> {
  const status = await readHostStatus(flags, context);
  if (status.kind !== 'unknown') return status;
  const { report, why } = status;
  if (report === undefined) throw why;
  return { kind: 'disk', report: { ...report, problems: [...report.problems, problemOf(why)] } };
}

/** True when the configuration exists, but this user has no permission to read it. */
function isConfigDenied(error: unknown): error is WritError {
  if (!isWritError(error) || error.code !== 'CONFIG_UNREADABLE') return false;
  const { cause } = error;
  return cause instanceof Error && 'code' in cause && cause.code === 'EACCES';
}

interface FailedRequest {
  readonly error: WritError;
  readonly socket: StatusEvidence['socket'];
  /** Path of the state directory. */
  readonly state: string;
  /** The same command with the rights of root, which can read the state. */
  readonly sudo: string;
}

async function readStatusWithoutAgent(
  { error, socket, state, sudo }: FailedRequest,
  options: ReturnType<typeof standaloneOptions>,
): Promise<HostStatus> {
  const disk = await agentModules.fromDisk();
  const last = disk.readAgedStatusReport(options);
  const statusFile = last && { agent: last.report.agent, ageMs: last.ageMs };
  const stateDirectory = await disk.readStateAccess({ ...options, writtenAtMs: last?.report.atMs });
  const source = chooseStatusSource({ socket, stateDirectory, ...(statusFile && { statusFile }) });
  const ageMs = last?.ageMs ?? 0;
  switch (source) {
    case 'state-directory':
      return { kind: 'disk', report: await disk.readOfflineStatus(options) };
    case 'state-directory-starting':
      return { kind: 'disk', report: await disk.readOfflineStatus({ ...options, agent: 'init' }) };
    case 'agent-lost':
      return { kind: 'unknown', why: withAge(error, ageMs), report: await disk.readOfflineStatus(options) };
    case 'state-directory-unanswered': {
      const report = await disk.readOfflineStatus({ ...options, agent: 'run' });
      return { kind: 'disk', report: withUnreachableAgent(report, error, ageMs) };
    }
    case 'unknown': {
      const isDenied = socket === 'not-listening' && stateDirectory === 'denied';
      const cause = isDenied ? deniedStateError(state, error) : error;
      // The hint is not to start an agent, because root can read the state directory.
      return { kind: 'unknown', why: withHint(sudo, last === undefined ? cause : withAge(cause, ageMs)) };
    }
    default: {
      if (last === undefined) return { kind: 'unknown', why: error };
      const report = source === 'status-file' ? last.report : withUnreachableAgent(last.report, error, ageMs);
      return { kind: 'file', ageMs, report, socket };
    }
  }
}

/** Adds the problem of an agent that was just killed, or runs without its socket: neither is healthy. */
function withUnreachableAgent(report: StatusReport, { facts }: WritError, ageMs: number): StatusReport {
  const socket = String(facts['socket']);
  const text = `nobody listens on ${socket}, though status.json, ${roughly(ageMs)} old, is of a running agent`;
  const problem = problemOf(new WritError('AGENT_UNREACHABLE', text, { facts: { socket, ageMs } }));
  return { ...report, problems: [...report.problems, problem] };
}

/** An agent that is not running is no fault: a host may pull by a timer. This user only lacks the right to read the status. */
function deniedStateError(state: string, { facts: { socket } }: WritError): WritError {
  const text = `this user has no right to read ${state}, and no agent listens on ${String(socket)}`;
  return new WritError('DISK_DENIED', text, { facts: { path: state, socket } });
}

function withHint(hint: string, { code, message, facts }: WritError): WritError {
  return new WritError(code, message, { facts, hint });
}

/** @returns the same error; its message names the age of the last status.json */
function withAge(error: WritError, ageMs: number): WritError {
  const { code, facts, hint } = error;
  const when = ageMs < 0 ? 'from the future' : `${roughly(ageMs)} old`;
  return new WritError(code, `${error.message}; its last status is ${when}`, {
    facts: { ...facts, ageMs },
    hint,
  });
}
