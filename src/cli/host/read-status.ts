// How a host is, for commands that only look: as the agent says, or what is on disk, or status.json, which an agent writes
// again every minute. Owns who is asked and in which order; whose word is good enough is whose-word-rules'.
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
  /** `status.json`, with its age. */
  | { readonly kind: 'file'; readonly report: StatusReport; readonly ageMs: number };

/** Nobody who may be heard knows. `report`: of the ledger, by the side of an agent that has gone without a word. */
export interface UnknownStatus {
  readonly kind: 'unknown';
  readonly why: WritError;
  readonly report?: StatusReport;
}

export type HostStatus = KnownStatus | UnknownStatus;

/** @throws WritError of an agent that runs and does not answer; CONFIG_*, STATE_DAMAGED */
export async function readHostStatus(flags: ConfigFlags, context: CommandContext): Promise<HostStatus> {
  try {
    const asked = await sendRequest({ request: { type: 'status' }, flags, context });
    return { kind: 'agent', report: expectResponse('status.result')(asked) };
  } catch (error) {
    if (isUnreadable(error)) return { kind: 'unknown', why: error };
    const door = connectFailureReason(error);
    if (door === undefined || !isWritError(error)) throw error;
    return readStatusWithoutAgent(
      { error, door, sudo: sudoCommand(flags, context) },
      standaloneOptions(flags, context),
    );
  }
}

/** For commands that show what they can. @throws WritError as readHostReport; what kept this user from knowing */
export async function readKnownStatus(flags: ConfigFlags, context: CommandContext): Promise<KnownStatus> {
  const seen = await readHostStatus(flags, context);
  if (seen.kind !== 'unknown') return seen;
  const { report, why } = seen;
  if (report === undefined) throw why;
  return { kind: 'disk', report: { ...report, problems: [...report.problems, problemOf(why)] } };
}

/** The configuration is there, and not for this user. */
function isUnreadable(error: unknown): error is WritError {
  if (!isWritError(error) || error.code !== 'CONFIG_UNREADABLE') return false;
  const { cause } = error;
  return cause instanceof Error && 'code' in cause && cause.code === 'EACCES';
}

interface FailedRequest {
  readonly error: WritError;
  readonly door: StatusEvidence['door'];
  /** The command for a user who may read the state. */
  readonly sudo: string;
}

async function readStatusWithoutAgent(
  { error, door, sudo }: FailedRequest,
  options: ReturnType<typeof standaloneOptions>,
): Promise<HostStatus> {
  const disk = await agentModules.fromDisk();
  const last = disk.readLastWord(options);
  const word = last && { agent: last.report.agent, ageMs: last.ageMs };
  const heard = {
    door,
    state: await disk.stateFor({ ...options, writtenAtMs: last?.report.atMs }),
    ...(word && { word }),
  };
  const whose = chooseStatusSource(heard);
  const ageMs = last?.ageMs ?? 0;
  switch (whose) {
    case 'disk':
      return { kind: 'disk', report: await disk.readOfflineStatus(options) };
    case 'disk-starting':
      return { kind: 'disk', report: await disk.readOfflineStatus({ ...options, agent: 'init' }) };
    case 'disk-lost':
      return { kind: 'unknown', why: tooOld(error, ageMs), report: await disk.readOfflineStatus(options) };
    case 'disk-doubted': {
      const report = await disk.readOfflineStatus({ ...options, agent: 'run' });
      return { kind: 'disk', report: doubted(report, error, ageMs) };
    }
    case 'unknown':
      // No agent to start: what there is to know is on the disk, and not for this user.
      return { kind: 'unknown', why: hinting(sudo, last === undefined ? error : tooOld(error, ageMs)) };
    default: {
      if (last === undefined) return { kind: 'unknown', why: error };
      const { report } = last;
      return { kind: 'file', ageMs, report: whose === 'file' ? report : doubted(report, error, ageMs) };
    }
  }
}

/** It may have been killed just now, or lives on without its socket: neither is well. */
function doubted(report: StatusReport, { facts }: WritError, ageMs: number): StatusReport {
  const socket = String(facts['socket']);
  const text = `nobody listens on ${socket}, though status.json, ${roughly(ageMs)} old, is of a running agent`;
  const problem = problemOf(new WritError('AGENT_UNREACHABLE', text, { facts: { socket, ageMs } }));
  return { ...report, problems: [...report.problems, problem] };
}

function hinting(hint: string, { code, message, facts }: WritError): WritError {
  return new WritError(code, message, { facts, hint });
}

function tooOld(error: WritError, ageMs: number): WritError {
  const { code, facts, hint } = error;
  const when = ageMs < 0 ? 'from the future' : `${roughly(ageMs)} old`;
  return new WritError(code, `${error.message}; its last status is ${when}`, {
    facts: { ...facts, ageMs },
    hint,
  });
}
