// Whose word `writ health` goes by: that of the agent, of what lies on disk, or of status.json, which an agent writes anew
// every minute. Owns when nobody's is good enough: "I may not look" is no alarm, and what was said long ago no good news.
import { isWritError, WritError } from '../../core/errors.js';
import type { StatusReport } from '../../core/status/status.js';
import type { CommandContext } from '../console/command.js';
import { roughly } from '../show/show-text.js';
import { agentDoors } from './agent-doors.js';
import { aloneOptions, ask, type ConfigFlags, isDenied, isNotRunning, only } from './ask.js';

export type HealthReport =
  | { readonly kind: 'agent' | 'disk'; readonly report: StatusReport }
  /** `status.json`, with its age. */
  | { readonly kind: 'file'; readonly report: StatusReport; readonly ageMs: number }
  /** Nobody who may be heard knows. `report`: of the ledger, by the side of an agent that has gone without a word. */
  | { readonly kind: 'unknown'; readonly why: WritError; readonly report?: StatusReport };

/** Of three beats of an agent. */
const maxAgeMs = 180_000;

/** @throws WritError of an agent that runs and does not answer; CONFIG_*, STATE_DAMAGED */
export async function readHealthReport(flags: ConfigFlags, context: CommandContext): Promise<HealthReport> {
  try {
    const asked = await ask({ request: { type: 'status' }, flags, context });
    return { kind: 'agent', report: only('status.result')(asked) };
  } catch (error) {
    if (isUnreadable(error)) return { kind: 'unknown', why: error };
    if (isWritError(error) && isDenied(error)) return byFile(error, flags, context, 'unknown');
    if (isWritError(error) && isNotRunning(error)) return withoutAgent(error, flags, context);
    throw error;
  }
}

/** The configuration is there, and not for this user. */
function isUnreadable(error: unknown): error is WritError {
  if (!isWritError(error) || error.code !== 'CONFIG_UNREADABLE') return false;
  const { cause } = error;
  return cause instanceof Error && 'code' in cause && cause.code === 'EACCES';
}

async function withoutAgent(
  error: WritError,
  flags: ConfigFlags,
  context: CommandContext,
): Promise<HealthReport> {
  const disk = await agentDoors.fromDisk();
  const options = aloneOptions(flags, context);
  if (!disk.mayReadState(options)) return byFile(error, flags, context, 'gone');
  const report = await disk.readOfflineStatus(options);
  const word = disk.readLastWord(options);
  // An agent that ends in order says so, and so does a pull by cron: this one went without a word.
  const isLost = word !== undefined && word.report.agent !== 'stop' && !isFresh(word.ageMs);
  return isLost ? { kind: 'unknown', why: tooOld(error, word.ageMs), report } : { kind: 'disk', report };
}

/** @param agent `gone`: nobody listens, whatever the file says */
async function byFile(
  error: WritError,
  flags: ConfigFlags,
  context: CommandContext,
  agent: 'gone' | 'unknown',
): Promise<HealthReport> {
  const { readLastWord } = await agentDoors.fromDisk();
  const word = readLastWord(aloneOptions(flags, context));
  if (word === undefined) return { kind: 'unknown', why: error };
  const { report, ageMs } = word;
  if (!isFresh(ageMs)) return { kind: 'unknown', why: tooOld(error, ageMs) };
  return { kind: 'file', ageMs, report: agent === 'gone' ? { ...report, agent: 'stop' } : report };
}

function isFresh(ageMs: number): boolean {
  return Math.abs(ageMs) <= maxAgeMs;
}

function tooOld(error: WritError, ageMs: number): WritError {
  const { code, facts, hint } = error;
  const when = ageMs < 0 ? 'of a time to come' : `${roughly(ageMs)} old`;
  return new WritError(code, `${error.message}; its last word is ${when}`, {
    facts: { ...facts, ageMs },
    hint,
  });
}
