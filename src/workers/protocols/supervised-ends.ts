// How runs of a process of supervisord ended since a mark: its log is read only where the process has changed.
import type { RecordedEnds } from '../contract/driver.js';
import { callSupervisord, type SupervisedProcess, type SupervisordPlace } from './supervisord-client.js';
import { parseSupervisordLog } from './supervisord-log.js';

const askTimeoutMs = 5000;
/** Of the end of the log: some hundred lines. */
const logBytes = 32_768;

interface SinceOptions {
  readonly mark: string | undefined;
  /** That Writ notifies with, as HUP; undefined where it restarts. */
  readonly signal: string | undefined;
}

/** @param process as supervisord shows it now */
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
    // The first look counts nothing: it only learns where the log ends.
    const last = text === undefined ? undefined : parseSupervisordLog(text, { name: '', after: '' }).lastAt;
    return { ...none, mark: `${signature}|${last ?? ''}` };
  }
  const isOther = before.split('@')[0] !== String(process.pid);
  if (text === undefined) return { ...none, unrecorded: isOther ? 1 : 0, mark: `${signature}|${after}` };
  const name = process.id.slice(process.id.indexOf(':') + 1);
  const found = parseSupervisordLog(text, { name, after, signal });
  const { abnormal, clean, bySignal, lastAt = after } = found;
  // The end by a notification blames nobody, so it is judged like an end without a record.
  const unrecorded = bySignal + (isOther && abnormal + clean + bySignal === 0 ? 1 : 0);
  return { abnormal, clean, unrecorded, mark: `${signature}|${lastAt}` };
}

/** @returns undefined where supervisord keeps no log, or does not answer */
async function readLog(place: SupervisordPlace): Promise<string | undefined> {
  const answer = await callSupervisord(place, ['readLog', -logBytes, 0], { timeoutMs: askTimeoutMs });
  return answer.kind === 'value' && typeof answer.value === 'string' ? answer.value : undefined;
}
