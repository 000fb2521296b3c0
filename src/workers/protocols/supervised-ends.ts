// Counts how runs of a supervisord process ended since a mark. Reads its log only if the process changed.
import type { RecordedEnds } from '../contract/driver.js';
import { callSupervisord, type SupervisedProcess, type SupervisordPlace } from './supervisord-client.js';
import { parseSupervisordLog } from './supervisord-log.js';

const askTimeoutMs = 5000;
/** Bytes that are read from the end of the log: some hundred lines. */
const logBytes = 32_768;

interface SinceOptions {
  readonly mark: string | undefined;
  /** The signal that Writ notifies with, as HUP; undefined if it restarts the process. */
  readonly signal: string | undefined;
}

/**
 * Counts the ends of the process since the mark. Reads the log of supervisord only if the process changed, and writes nothing.
 * @param process its current state in supervisord; `mark` is that of the previous call, undefined for the first one
 * @returns the counts and the next mark, never undefined. Counts are 0 for the first call and for an unchanged process. A new
 *   pid without an end in the log counts as 1 `unrecorded`, as without a log. An end by the signal of Writ counts as
 *   `unrecorded` too. A supervisord that does not answer is not an error.
 */
export async function supervisedEndsSince(
  place: SupervisordPlace,
  process: SupervisedProcess,
  { mark, signal }: SinceOptions,
): Promise<RecordedEnds | undefined> {
  const signature = [process.pid, process.startedAt, process.state].join('@');
  const none = { abnormal: 0, clean: 0, unrecorded: 0 };
  const [before, after] = mark?.split('|') ?? [];
  if (mark !== undefined && before === signature) return { ...none, mark };
  const text = await readLog(place);
  if (before === undefined || after === undefined) {
    // The first call only records the end of the log.
    const last = text === undefined ? undefined : parseSupervisordLog(text, { name: '', after: '' }).lastAt;
    return { ...none, mark: `${signature}|${last ?? ''}` };
  }
  const isOther = before.split('@')[0] !== String(process.pid);
  if (text === undefined) return { ...none, unrecorded: isOther ? 1 : 0, mark: `${signature}|${after}` };
  const name = process.id.slice(process.id.indexOf(':') + 1);
  const found = parseSupervisordLog(text, { name, after, signal });
  const { abnormal, clean, bySignal, lastAt = after } = found;
  // An end by the signal of a notification is no evidence against a release, so it counts as unrecorded.
  const unrecorded = bySignal + (isOther && abnormal + clean + bySignal === 0 ? 1 : 0);
  return { abnormal, clean, unrecorded, mark: `${signature}|${lastAt}` };
}

/** @returns undefined if supervisord has no log or does not answer */
async function readLog(place: SupervisordPlace): Promise<string | undefined> {
  const answer = await callSupervisord(place, ['readLog', -logBytes, 0], { timeoutMs: askTimeoutMs });
  return answer.kind === 'value' && typeof answer.value === 'string' ? answer.value : undefined;
}
